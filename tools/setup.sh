#!/usr/bin/env bash
# Usage: setup.sh [tests|all|web]
# Installs what is missing on Debian 12 (and its kin): what builds the tool; with "tests" also what `make test` uses, the
# virtual environment .venv included; with "all" also what only `make test-all` uses; with "web" what `make web` uses, and
# nothing of the tests'. Fails where something cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build binutils git libasmjit-dev libfmt-dev libcli11-dev libxxhash-dev nlohmann-json3-dev ccache)
if [[ ${PRESET:-} == clang ]]; then packages+=(clang); fi
case ${1:-} in
  tests | all)
    packages+=(libgtest-dev python3-dev python3-venv openssl clang-format wabt chromium esbuild rollup node-typescript man-db zsh fish
      binutils-aarch64-linux-gnu)
    command -v node >/dev/null || packages+=(nodejs)
    ;;&
  all) packages+=(clang lintian firefox-esr g++-aarch64-linux-gnu qemu-user) ;;&
  web | all)
    packages+=(clang-19 lld-19 libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 libclang-rt-19-dev-wasm32 wasi-libc binaryen brotli)
    command -v node >/dev/null || packages+=(nodejs)
    ;;
esac

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

install_packages() {
  local wanted
  mapfile -t wanted < <(missing "${packages[@]}")
  if ((${#wanted[@]} == 0)); then return; fi
  echo "setup: installing ${wanted[*]}"
  as_root apt-get update --quiet || echo "setup: apt-get update failed, going on with the lists that are there" >&2
  if ! as_root apt-get install --quiet --yes --no-install-recommends "${wanted[@]}"; then
    echo "setup: could not install ${wanted[*]}" >&2
    exit 1
  fi
}

# The virtual environment is made once, and again when what it should hold changes.
make_venv() {
  local wanted
  wanted=$(grep -v '^#' tests/requirements.txt)
  [[ -f .venv/holds && $(<.venv/holds) == "$wanted" ]] && return
  echo "setup: making .venv with what tests/requirements.txt lists"
  python3 -m venv --clear .venv
  .venv/bin/pip install --quiet --requirement tests/requirements.txt
  echo "$wanted" >.venv/holds
}

# asmjit's source, of the version that is installed: Debian's package holds its code for this machine only. The lists of
# source packages are this call's own, made of the mirrors that apt knows.
fetch_asmjit() {
  local version folder=build/asmjit from=build/asmjit.apt
  version=$(dpkg-query --show --showformat='${source:Version}' libasmjit-dev)
  [[ -f $folder/version && $(<$folder/version) == "$version" ]] && return
  echo "setup: fetching the source of asmjit $version"
  rm -rf "$folder" "$from"
  mkdir -p "$folder" "$from/lists/partial"
  apt-get indextargets --format 'deb-src $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
    sort -u >"$from/sources.list"
  local options=(-o "Dir::Etc::SourceList=$PWD/$from/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$PWD/$from/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=)
  apt-get --quiet "${options[@]}" update
  (cd "$from" && apt-get --quiet "${options[@]}" source --download-only "asmjit=$version")
  tar --extract --strip-components=1 --directory "$folder" --file "$from"/asmjit_*.orig.tar.*
  rm -rf "$from"
  echo "$version" >"$folder/version"
}

if command -v dpkg-query >/dev/null; then
  install_packages
  case ${1:-} in web | all) fetch_asmjit ;; esac
else
  echo "setup: this is no Debian; please see to it that these are installed: ${packages[*]}"
fi
case ${1:-} in tests | all) make_venv ;; esac
