#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the readers under libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer. Needs Clang
# and its runtime (Debian: clang libclang-rt-dev, or libclang-rt-14-dev).
#
#   scripts/fuzz.sh [SECONDS]      for each reader; default 600
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-600}
cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DPLIMSOLL_BUILD_FUZZERS=ON -DPLIMSOLL_SANITIZER=address,undefined,fuzzer-no-link \
  -DPLIMSOLL_BUILD_TESTS=OFF -DPLIMSOLL_BUILD_BENCHMARKS=OFF -DPLIMSOLL_BUILD_CLI=OFF \
  -DPLIMSOLL_BUILD_EXAMPLES=OFF >/dev/null
cmake --build build/fuzz
for name in trace csv plan description; do
  corpus=build/fuzz/corpus_$name
  mkdir -p "$corpus"
  cp fuzz/corpus/"$name"/* "$corpus"/
  echo "== ${name}_fuzzer, $seconds s"
  build/fuzz/fuzz/"${name}_fuzzer" -max_total_time="$seconds" -max_len=8192 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="build/fuzz/" "$corpus"
done
