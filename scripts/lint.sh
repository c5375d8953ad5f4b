#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks formatting, the layers and SPDX lines; with --tidy, also that nothing
# warns, under GCC and clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files '*.h' '*.cc')
clang-format --dry-run --Werror "${sources[@]}"
python3 scripts/check_layers.py
for file in $(git ls-files '*.h' '*.cc' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' .ci/run); do
  head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || {
    echo "$file: no SPDX line" >&2
    exit 1
  }
done
if [ "${1:-}" = "--tidy" ]; then
  cmake --preset dev -DPLIMSOLL_WARNINGS_AS_ERRORS=ON >/dev/null
  cmake --build --preset dev
  git ls-files 'src/*.cc' 'cli/*.cc' | grep -v _test.cc | xargs -P "$(nproc)" -n 4 clang-tidy -p build/dev --quiet
fi
