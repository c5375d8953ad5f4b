#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and shows what Plimsoll does with a recorded ResNet-50.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh
cmake --preset release >/dev/null
cmake --build --preset release --target plimsoll_cli
plimsoll=build/release/cli/plimsoll
trace=data/traces/resnet50_b64.trace.gz

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }

say "1. What does a training iteration need?   plimsoll trace $trace"
"$plimsoll" trace "$trace"

say "2. What does each allocator make of it?   plimsoll pool $trace --planner all --draw"
"$plimsoll" pool "$trace" --planner all --draw

say "3. Half of the memory, please.   plimsoll plan $trace --limit 50% -o build/resnet50.plan"
"$plimsoll" plan "$trace" --limit 50% -o build/resnet50.plan

say "4. Is that plan safe, whatever copies and ops really take?   plimsoll check build/resnet50.plan"
"$plimsoll" check build/resnet50.plan

say "5. What do its queues do?   plimsoll simulate build/resnet50.plan"
"$plimsoll" simulate build/resnet50.plan

say "6. What does each limit cost?   plimsoll curve $trace --planners joint,autoswap-bo"
"$plimsoll" curve "$trace" --planners joint,autoswap-bo --limits 90%,80%,70%,60%,50%,40%,30%
