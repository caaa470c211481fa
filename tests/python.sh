#!/usr/bin/env bash
# Usage: python.sh ARGUMENT...
# Python with what tests/requirements.txt lists, where tools/test.sh has made a .venv of it; else the system's.
root=$(dirname "$(realpath "$0")")/..
python=$root/.venv/bin/python
[[ -x $python ]] || python=python3
exec "$python" "$@"
