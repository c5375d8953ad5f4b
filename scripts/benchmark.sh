#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the tables of docs/benchmarks.md, in a release build; not those of endurance, beside
# PyTorch (compare_pytorch.py) and of a GPU (benchmark_gpu.sh).
#
#   scripts/benchmark.sh [DATA_DIR]
#
# DATA_DIR may hold traces/*.trace.gz, singa/*.csv.gz (the event log behind Figure 9 of paper 001),
# chains/*.json, minimalloc/*.csv (the instances A to K of
# google/minimalloc) and placement/*.csv.gz (of cappadokes/idealloc); whatever is not there is left
# out. Without it, the traces and chains of this repository are used.
set -euo pipefail
cd "$(dirname "$0")/.."

data=${1:-data}
scripts/install_dependencies.sh
cmake --preset release >/dev/null
cmake --build --preset release --target trace_pools placement_instances million_buffers pool_latency \
  chains chain_plans chains_recompute swapping limits dqn recompute_baselines predictions patterns layrub
bin=build/release/benchmarks
shopt -s nullglob

run() {
  printf '\n$ %s\n' "$*"
  "$@"
}

traces=("$data"/traces/*.trace.gz)
hard=("$data"/minimalloc/*.csv)
large=("$data"/placement/*.csv.gz)
[ "${#traces[@]}" -eq 0 ] || run "$bin"/trace_pools "${traces[@]}"
[ "${#hard[@]}" -eq 0 ] || run "$bin"/placement_instances "${hard[@]}"
[ "${#hard[@]}" -eq 0 ] || run "$bin"/placement_instances --minimise 20 "$data"/minimalloc/[DJ].*.csv
[ "${#large[@]}" -eq 0 ] || run "$bin"/placement_instances "${large[@]}"
chains=("$data"/chains/*.json)
[ "${#chains[@]}" -eq 0 ] || run "$bin"/chains "$data"/chains
[ "${#chains[@]}" -eq 0 ] || run "$bin"/chain_plans "$data"/chains
[ "${#chains[@]}" -eq 0 ] || run "$bin"/chains_recompute "$data"/chains
logs=("$data"/singa/*.csv.gz)
[ "${#logs[@]}" -eq 0 ] || run "$bin"/swapping --figure9 --singa "${logs[0]}"
[ "${#traces[@]}" -eq 0 ] || run "$bin"/swapping --table2 --figures --grid "$data"/traces
[ "${#traces[@]}" -eq 0 ] || run "$bin"/limits "${traces[@]}"
[ "${#traces[@]}" -eq 0 ] || run "$bin"/limits --reduction --seconds 0.5 "${traces[@]}"
[ "${#traces[@]}" -eq 0 ] || run "$bin"/recompute_baselines "${traces[@]}"
networks=("$data"/traces/{vgg16_cifar_b100,resnet50_b64,unet_b8_256,lstm_b64_t512,kmeans_1m,sdresnet110_cifar_b100}.trace.gz)
deep="$data"/traces/resnet152_b32.trace.gz
[ ! -f "${networks[1]}" ] || run "$bin"/dqn --minutes 5 "${networks[@]}"
[ ! -f "$deep" ] || run "$bin"/dqn --transfer "${networks[1]}" "$deep"
run "$bin"/million_buffers
run "$bin"/pool_latency
run "$bin"/layrub
run "$bin"/predictions 0.5
OMP_NUM_THREADS=1 run "$bin"/patterns
