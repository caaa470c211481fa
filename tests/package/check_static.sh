#!/usr/bin/env bash
# Usage: check_static.sh PROGRAM
# What we carry to other machines needs libc, and nothing that a package would have to bring.
set -euo pipefail
newest_glibc=2.35  # Ubuntu 22.04

needed=$(readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if grep -vE '^(libc|libm|libdl|librt|libpthread|ld-linux-x86-64)\.so' <<<"$needed"; then
  echo "$1: needs the libraries above"
  exit 1
fi

versions=$(objdump --dynamic-syms "$1" | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -Vu)
if [[ $(printf '%s\n' "$versions" $newest_glibc | sort -V | tail -1) != "$newest_glibc" ]]; then
  objdump --dynamic-syms "$1" | grep "GLIBC_$(tail -1 <<<"$versions")"
  echo "$1: needs a glibc newer than $newest_glibc for the symbols above"
  exit 1
fi
