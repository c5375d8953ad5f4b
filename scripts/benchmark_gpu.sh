#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the figures of "On a GPU" in docs/benchmarks.md, from the release build, on a machine with
# a GPU that nobody else uses. --help lists the parts.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
scripts/benchmark_gpu.sh PART[:WHICH]...

build      configures and builds the release preset with CUDA; the other parts do not
tests      ctest -L cuda
sanitize   compute-sanitizer (:memcheck, :initcheck, :racecheck)
link       the card, its link, and where ResNet-50's time goes
free       beside PyTorch, without a limit (:CASE,...)
limits     at limits, beside what PyTorch offers to save memory (:CASE,...)
compile    beside torch.compile and its memory budgets (:CASE,...)
pools      Table I of paper 001
graphs     iterations as graphs and op by op (:MODEL:BATCH)
ballast    on a card where only the limit is free
deep       ResNet-1517 and 5,006 layers (:resnet1517, :preresnet5006)
batches    the largest batches under 12 GB, beside normal ones (:MODEL)
choices    updates at the end, op by op, and plans that copy nothing, at 62 % (:MODEL)
all        all parts, also after one that fails

What takes too long at once can be had piece by piece: limits:resnet152. free, limits, compile and
ballast need torch, all but ballast torchvision, GPT-2 transformers. HOST_LIMIT, by default 100GiB,
is how much host memory the largest batches may take.
TEXT
}

parts=(build tests sanitize link free limits compile pools graphs ballast deep batches choices)
plimsoll=build/release/cli/plimsoll
on_card=(--device cuda --keep-batch --wait-for-plan)
fp32=resnet50,resnet152,densenet201
bf16=resnet50-bf16,resnet152-bf16,densenet201-bf16,gpt2-medium-bf16
PATH=$PATH:/usr/local/cuda/bin

die() { printf 'benchmark_gpu.sh: %s\n' "$1" >&2 && exit 2; }
run() { ran=yes && printf '\n$ %s\n' "$*" && "$@"; }
beside() { run python3 benchmarks/side_by_side.py "$@"; }
is_asked() { [ -z "$which" ] || [ "$which" = "$1" ]; }

sanitize() { # TOOL TEST [FILTER]
  is_asked "$1" || return 0
  run compute-sanitizer --tool "$1" --error-exitcode 1 "build/release/src/plimsoll/cuda/$2" \
    --gtest_brief=1 --gtest_filter="${3:-*}"
}

deep() { # MODEL BUDGET [LIMIT]
  is_asked "$1" || return 0
  run "$plimsoll" train --model "$1" --batch 32 "${on_card[@]}" --steps 30 --budget "$2" \
    ${3:+--limit "$3"}
}

batches() { # MODEL BATCH
  is_asked "$1" || return 0
  run "$plimsoll" train --model "$1" --batch "$2" "${on_card[@]}" --steps 30 --limit 12GB
  run "$plimsoll" maxbatch --model "$1" --limit 12GB --device cuda --steps 24 --json \
    --host-limit "${HOST_LIMIT:-100GiB}"
}

choices() { # MODEL BATCH
  is_asked "$1" || return 0
  local train=("$plimsoll" train --model "$1" --batch "$2" "${on_card[@]}" --steps 40)
  run "${train[@]}" --updates early
  run "${train[@]}" --updates late
  run "${train[@]}" --limit 62%
  run "${train[@]}" --limit 62% --updates late
  run "${train[@]}" --limit 62% --no-graphs
  # Over a link that is next to none, nothing is copied, and the plan is a graph.
  local link
  link=$(mktemp) && echo '{"name": "none", "out_bytes_per_s": 2000, "in_bytes_per_s": 2000}' >"$link"
  run "${train[@]}" --limit 62% --link "$link"
  rm -f "$link"
}

run_part() {
  case $1 in
    build) scripts/install_dependencies.sh
      run cmake --preset release -DPLIMSOLL_CUDA=ON
      run cmake --build --preset release ;;
    tests) run ctest --test-dir build/release -L cuda --output-on-failure ;;
    sanitize) for test in cuda_backend kernels norm_kernels pool_kernels; do
        sanitize memcheck ${test}_test
      done
      sanitize memcheck cuda_equality_test '*/lenet:*/resnet20:*/gpt2_small'
      sanitize initcheck cuda_backend_test '*/plain:CudaBackendTest.*'
      sanitize initcheck cuda_equality_test '*/lenet:*/resnet20:*/gpt2_small'
      sanitize racecheck kernels_test ;;
    link) run "$plimsoll" devices
      run "$plimsoll" calibrate --device cuda
      run "$plimsoll" profile --model resnet50 --batch 128 --device cuda ;;
    free) beside --cases "${which:-$fp32,vgg16,$bf16}" --modes eager,channels_last ;;
    limits) beside --cases "${which:-$fp32,gpt2-medium-bf16}" --limits \
        --modes eager,channels_last,save_on_cpu,offload,checkpoint1,checkpoint2 ;;
    compile) beside --cases "${which:-$fp32,vgg16,gpt2-medium-bf16}" --limits --no-percentages \
        --modes compile,budget0.5,budget0.2 --timeout 500 ;;
    pools) run build/release/benchmarks/gpu_pools resnet50:128 preresnet164:16 ;;
    graphs) run python3 benchmarks/gpu_graphs.py ${which:+"$which"} ;;
    ballast) run python3 benchmarks/gpu_ballast.py ;;
    deep) for limit in 12GB 4GB ''; do deep resnet1517 10 $limit; done
      deep preresnet5006 20 12GB ;;
    batches) for model in alexnet:256 vgg16:64 resnet34:64 resnet50:64 resnet56:128 wrn28-10:128; do
        batches ${model%:*} ${model#*:}
      done ;;
    choices) for model in resnet50:128 resnet152:64 densenet201:64; do
        choices ${model%:*} ${model#*:}
      done ;;
  esac
}

case " $* " in *' --help '* | *' -h '*) usage && exit ;; esac
[ $# -gt 0 ] || die "which part? --help lists them"
for argument in "$@"; do
  [[ " ${parts[*]} all " = *" ${argument%%:*} "* ]] || die "no part is called $argument; see --help"
done
failed=()
for argument in "$@"; do
  part=${argument%%:*} which=${argument#"${argument%%:*}"} ran=
  which=${which#:}
  if [ "$part" = all ]; then
    for each in "${parts[@]}"; do scripts/benchmark_gpu.sh "$each" || failed+=("$each"); done
    continue
  fi
  if [ "$part" != build ]; then
    [ -x $plimsoll ] || die "$plimsoll is missing; scripts/benchmark_gpu.sh build makes it"
    $plimsoll devices --json | grep -q '"device": "cuda' || die "no GPU; see $plimsoll devices"
  fi
  begin=$SECONDS
  run_part "$part"
  [ -n "$ran" ] || die "nothing of $part is called $which"
  printf '\n%s: %d s\n' "$argument" $((SECONDS - begin))
done
[ ${#failed[@]} -eq 0 ] || { printf "failed: %s\n" "${failed[*]}" >&2 && exit 1; }
