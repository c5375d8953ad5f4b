#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds and runs all tests.
#
#   scripts/test.sh [PRESET]      dev (the default), release, asan or tsan
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-dev}
scripts/install_dependencies.sh
cmake --preset "$preset"
cmake --build --preset "$preset"
ctest --preset "$preset" --parallel "$(nproc)" --no-tests=error
