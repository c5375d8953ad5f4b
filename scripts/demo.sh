#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and trains a network in half of the memory that it needs.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh
# It runs on the host: kernels for a GPU are compiled if they were asked for, which takes longer.
options=(-DPLIMSOLL_PRECOMPILE_HEADERS=ON -DPLIMSOLL_JOIN_FILES=ON)
[[ -f build/release/CMakeCache.txt ]] || options+=(-DPLIMSOLL_CUDA=OFF)
cmake --preset release "${options[@]}" >/dev/null
cmake --build --preset release --target plimsoll_cli
plimsoll=build/release/cli/plimsoll
out=build/demo
mkdir -p "$out"

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
# Same seed, same data; the planner looks at a fixed number of choices, so that runs repeat.
network=(--model resnet20 --batch 32 --steps 16)

say "1. What does a ResNet-20 need?   plimsoll train ${network[*]}"
"$plimsoll" train "${network[@]}" --json >"$out/unlimited.json"
python3 - "$out/unlimited.json" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
print(f"peak load {run['peak_load_bytes'] / 2**20:.1f} MiB, {run['iteration_ms']:.1f} ms a step,"
      f" loss {run['losses'][0]:.4f} at first, {run['losses'][-1]:.4f} in the end")
PYTHON

say "2. There is half of that.   plimsoll train ${network[*]} --limit 50% --plain"
"$plimsoll" train "${network[@]}" --limit 50% --plain || true

say "3. The same under the line.   plimsoll train ${network[*]} --limit 50%"
"$plimsoll" train "${network[@]}" --limit 50% --evaluations 200 \
  --trace-out "$out/resnet20.trace.gz" --plan-out "$out/resnet20.plan" \
  --timeline-out "$out/resnet20.csv"

say "4. Are those the same numbers?   the losses of both runs, bit for bit"
"$plimsoll" train "${network[@]}" --limit 50% --evaluations 200 --json >"$out/limited.json"
python3 - "$out/unlimited.json" "$out/limited.json" <<'PYTHON'
import json, sys
unlimited, limited = (json.load(open(path)) for path in sys.argv[1:])
for step in (0, 1, 7, 15):
    print(f"step {step + 1:2}: {unlimited['losses'][step]!r} without a limit,"
          f" {limited['losses'][step]!r} under it")
same = unlimited["losses"] == limited["losses"]
print(f"all {len(limited['losses'])} losses are {'equal' if same else 'NOT EQUAL'}; at most"
      f" {limited['peak_footprint_bytes']} of {limited['limit_bytes']} bytes were in use")
sys.exit(0 if same else 1)
PYTHON

say "5. Is the plan that it ran to safe at any speed?   plimsoll check $out/resnet20.plan"
"$plimsoll" check "$out/resnet20.plan"

say "6. What would others have done over a link of 1 GB/s?   plimsoll compare $out/resnet20.trace.gz"
cat >"$out/link.json" <<'JSON'
{"name": "1GB/s", "out_bytes_per_s": 1e9, "in_bytes_per_s": 1e9}
JSON
"$plimsoll" compare "$out/resnet20.trace.gz" --limits 50% --planners all --link "$out/link.json" --budget 2

say "7. And a ResNet-50 on an H200, from a recording?   plimsoll curve data/traces/resnet50_b64.trace.gz"
"$plimsoll" curve data/traces/resnet50_b64.trace.gz --planners joint,autoswap-bo \
  --limits 80%,60%,50%,40% --budget 2

say "8. Look at it.   plimsoll report $out/resnet20.plan --measured $out/resnet20.csv"
"$plimsoll" report "$out/resnet20.plan" --measured "$out/resnet20.csv" \
  --trace "$out/resnet20.trace.gz" --out "$out/resnet20.html" && echo "open $PWD/$out/resnet20.html in a browser"
