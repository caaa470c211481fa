#!/usr/bin/env bash
# Usage: check_shared.sh LIBRARY.so [INCLUDE_FOLDER]
# A shared library of ours needs no writable code at load time, and lends nobody the libraries inside it
# (torch's fbgemm, say, brings an asmjit of its own into the same process). With its public headers: it exports what they
# declare, all of trireme.h, and nothing beside; each symbol carries the version of cmake/trireme.map.
set -euo pipefail
library=$1
failed=0

dynamic=$(readelf --dynamic --wide "$library")
exported=$(nm --dynamic --defined-only --demangle --without-symbol-versions "$library")

if grep TEXTREL <<<"$dynamic"; then
  echo "$library: has text relocations"
  failed=1
fi
if grep -E ' (.* for |.* to )?(asmjit|fmt|nlohmann|CLI)::' <<<"$exported"; then
  echo "$library: exports symbols of the libraries inside it"
  failed=1
fi

if [[ ${2:-} ]]; then
  declared=$(grep -ohE '\btrireme_[a-z_]+\(' "$2/trireme.h" "$2"/trireme/*.h | tr -d '(' | sort -u)
  exported_c=$(grep -oE '[TW] trireme_[a-z_]+$' <<<"$exported" | cut -c 3- | sort -u)
  if ! diff <(echo "$declared") <(echo "$exported_c"); then
    echo "$library: the functions of trireme.h (<) are not those it exports (>)"
    failed=1
  fi
  version=TRIREME_$(readelf --dynamic --wide "$library" | sed -n 's/.*(SONAME).*\[libtrireme\.so\.\(.*\)\]/\1/p')
  # nm has NAME@@VERSION, and the version itself as an absolute symbol.
  if nm --dynamic --defined-only --with-symbol-versions "$library" | grep -vE "(@@$version| A $version.*)$"; then
    echo "$library: exports the symbols above without the version $version"
    failed=1
  fi
  if grep -vE ' (A TRIREME_|[TW] trireme_|[TWVBDR] (vtable for |typeinfo for |typeinfo name for )?trireme::)' <<<"$exported"; then
    echo "$library: exports the symbols above, which are not Trireme's"
    failed=1
  fi
  words=$(cat "$2"/trireme/*.hpp | grep -oE '[A-Za-z_][A-Za-z_0-9]*' | sort -u)
  # The first name behind trireme:: of our own functions and data; templates of the standard library may name others.
  for name in $(cut -c 20- <<<"$exported" | grep -oE '^(vtable for |typeinfo for |typeinfo name for )?trireme::[A-Za-z_:]+' |
    sed -E 's/.*trireme::(jit::|ops::)?([A-Za-z_]+).*/\2/' | sort -u); do
    grep -qxF "$name" <<<"$words" || { echo "$library: exports trireme::$name, which no public header has"; failed=1; }
  done
fi
exit $failed
