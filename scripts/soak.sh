#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The long suites: placement properties, and plans with their judge against random execution, on a
# hundred thousand random problems each, `joint` and its bound against exact solvers on a tenth of
# that, and the readers under a fuzzer with sanitizers.
#
#   scripts/soak.sh [CASES] [FUZZ_SECONDS]      default 100000 and 600
set -euo pipefail
cd "$(dirname "$0")/.."

cases=${1:-100000}
fuzz_seconds=${2:-600}
scripts/install_dependencies.sh

cmake --preset release
cmake --build --preset release
export PLIMSOLL_CASES=$cases RC_PARAMS="max_success=$cases"
for test in tight_test search_test validator_test smartpool_test skyline_test reduced_test load_test \
            core_test baselines_test; do
  echo "== $test, $cases cases"
  build/release/src/plimsoll/place/$test --gtest_brief=1
done
for test in plan/check_test plan/check_drops_test plan/check_replay_random_test sim/interleaver_test; do
  echo "== $test, $cases cases"
  build/release/src/plimsoll/$test --gtest_brief=1
done
# Every choice there is, for each problem: a tenth of the cases takes a quarter of an hour or so.
echo "== planners/joint_exact_test, $((cases / 10)) cases"
PLIMSOLL_CASES=$((cases / 10)) build/release/src/plimsoll/planners/joint_exact_test --gtest_brief=1
scripts/fuzz.sh "$fuzz_seconds"
