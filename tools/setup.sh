#!/usr/bin/env bash
# Usage: setup.sh [tests]
# Installs what the build and the tests need on Debian 12 (and its kin), and only what is missing. "tests": also what only
# they use and takes a while (chromium: 113 MB, 20 s).
set -euo pipefail

# Without these nothing can be built.
required=(g++ cmake ninja-build binutils git libasmjit-dev libfmt-dev libcli11-dev libgtest-dev nlohmann-json3-dev
          libxxhash-dev python3 python3-venv)
# Without these the build is slower, or some tests are skipped and say so.
optional=(ccache clang-format wabt python3-dev)
command -v node >/dev/null || optional+=(nodejs)
if [[ ${PRESET:-} == clang ]]; then required+=(clang); fi
if [[ ${1:-} == tests ]]; then optional+=(chromium); fi

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is no Debian; please see to it that these are installed: ${required[*]} ${optional[*]}"
  exit 0
fi

missing() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    echo "setup: neither root nor sudo, cannot run: $*" >&2
    return 1
  fi
}

install() { as_root apt-get install --yes --no-install-recommends "$@"; }

# NVRTC compiles the users' CUDA C++, and is opened at run time; without it its tests are skipped and say so.
install_nvrtc() {
  compgen -G '.nvrtc/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.*' >/dev/null && return
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -q 'libnvrtc\.so' && return
  compgen -G '/usr/local/cuda/lib64/libnvrtc.so.*' >/dev/null && return
  echo "setup: installing nvidia-cuda-nvrtc into .nvrtc"
  if ! { python3 -m venv --clear .nvrtc && .nvrtc/bin/pip install --quiet nvidia-cuda-nvrtc; }; then
    rm -rf .nvrtc
    echo "setup: could not install nvidia-cuda-nvrtc; going on without" >&2
  fi
}

install_packages() {
  local wanted welcome
  mapfile -t wanted < <(missing "${required[@]}")
  mapfile -t welcome < <(missing "${optional[@]}")
  if ((${#wanted[@]} + ${#welcome[@]} == 0)); then return; fi

  echo "setup: installing ${wanted[*]} ${welcome[*]}"
  as_root apt-get update || echo "setup: apt-get update failed, going on with the lists that are there" >&2
  if ((${#wanted[@]})) && ! install "${wanted[@]}"; then
    echo "setup: could not install ${wanted[*]}" >&2
    exit 1
  fi
  if ((${#welcome[@]})) && ! install "${welcome[@]}"; then
    echo "setup: could not install ${welcome[*]}; going on without" >&2
  fi
}

cd "$(dirname "$0")/.."
install_packages
install_nvrtc
