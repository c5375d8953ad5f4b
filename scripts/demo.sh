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

say "3. Does it fit into 5500 MiB?   plimsoll pool $trace --capacity 5500MiB"
for planner in caching bfc tight; do
  if "$plimsoll" pool "$trace" --planner "$planner" --capacity 5500MiB >/dev/null 2>&1; then
    echo "$planner: yes"
  else
    echo "$planner: no"
  fi
done

say "4. Take the placement along"
"$plimsoll" pool "$trace" --output build/resnet50_placement.csv >/dev/null
head -n 4 build/resnet50_placement.csv
echo "... in build/resnet50_placement.csv"
