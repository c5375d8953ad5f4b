#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian or Ubuntu packages that building and testing need, those that are missing.
# Needs root or sudo only if something is missing. docs/dependencies.md says what each is for.
set -euo pipefail

packages=(
  g++ cmake ninja-build python3
  libfmt-dev zlib1g-dev nlohmann-json3-dev libcli11-dev libeigen3-dev
  libxxhash-dev libdnnl-dev ocl-icd-opencl-dev node-d3
  libgtest-dev libgmock-dev librapidcheck-dev
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "please install: ${missing[*]} (or what your system calls them)" >&2
  exit 1
fi
run=()
if [ "$(id -u)" -ne 0 ]; then
  run=(sudo)
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get update -qq
"${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
