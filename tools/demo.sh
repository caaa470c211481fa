#!/usr/bin/env bash
# Usage: demo.sh TRIREME
# What Trireme does, in four commands: a program, the backward derived from it, its bits on each device, its speed.
set -euo pipefail
trireme=$1

show() {
  printf '\n$ trireme'
  printf ' %s' "${@@Q}" | sed -E "s/'([A-Za-z0-9_-]+)'/\1/g"
  printf '\n'
  "$trireme" "$@"
}

show show rms_norm
show show rms_norm --backward
show verify "rms_norm 33x4097 x=bf16 backward"
show bench "rms_norm 4096x4096"
