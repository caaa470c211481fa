#!/usr/bin/env bash
# Usage: install_test.sh BUILD CMAKE CXX CC
# Installs a build, moves the tree, and builds two small projects against it, one in C++ and one in C, each with the static
# and the shared library. Then the same C file by pkg-config, where that is installed.
set -euo pipefail
build=$(realpath "$1") cmake=$2
export CXX=$3 CC=$4
here=$(dirname "$(realpath "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$cmake" --install "$build" --prefix "$folder/first" >/dev/null
mv "$folder/first" "$folder/moved"
if grep -rIl -e "$folder" -e "$build" "$folder/moved" --include='*.cmake' --include='*.pc' --include='*.h*'; then
  echo "the files above name the place they were built in or installed to"
  exit 1
fi

# What is no code: licences, the manual page, and what shells complete by.
for file in man/man1/trireme.1.gz bash-completion/completions/trireme zsh/site-functions/_trireme \
  zsh/vendor-completions/_trireme fish/vendor_completions.d/trireme.fish doc/trireme/LICENSE \
  doc/trireme/THIRD_PARTY_NOTICES; do
  [[ -s $folder/moved/share/$file ]] || { echo "FAIL: share/$file is not installed"; exit 1; }
done

# Public headers only, and each stands alone.
headers=$folder/moved/include
if ! diff <(cd "$here/../../include" && find . -type f | sort) <(cd "$headers" && find . -type f ! -path ./trireme/ops.hpp | sort); then
  echo "FAIL: the installed headers (>) are not the public ones (<)"
  exit 1
fi
"$CC" -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only "$headers/trireme.h"
for header in "$headers"/trireme/*.hpp; do
  "$CXX" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I"$headers" -x c++ - <<<"#include \"$header\"" || exit 1
done

expect_right() {
  local said
  said=$("$@")
  if [[ $said != right ]]; then
    echo "FAIL $*: said '$said'"
    exit 1
  fi
}
for language in cpp c; do
  for shared in OFF ON; do
    "$cmake" -S "$here/$language" -B "$folder/$language" -G Ninja -DCMAKE_PREFIX_PATH="$folder/moved" \
      -DTRIREME_USE_SHARED=$shared >"$folder/log" || { cat "$folder/log"; exit 1; }
    "$cmake" --build "$folder/$language" >"$folder/log" || { cat "$folder/log"; exit 1; }
    if [[ $shared == ON ]] && ! ldd "$folder/$language/from_$language" | grep libtrireme >/dev/null; then  # -q would break the pipe
      echo "FAIL $language: TRIREME_USE_SHARED=ON linked no libtrireme.so"
      exit 1
    fi
    expect_right "$folder/$language/from_$language"
    [[ $language == c ]] && continue
    if said=$("$folder/cpp/from_cpp" fail 2>&1) || [[ $said != *InvalidProgram* ]]; then
      echo "FAIL: without exceptions, an error that nobody looked at said '$said'"
      exit 1
    fi
  done
done

if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$(dirname "$(find "$folder/moved" -name trireme.pc)")
  export PKG_CONFIG_PATH
  library_folder=$(dirname "$PKG_CONFIG_PATH")
  read -ra flags <<<"$(pkg-config --cflags --libs trireme)"
  "$CC" "$here/c/main.c" "${flags[@]}" -Wl,-rpath,"$library_folder" -o "$folder/by_pkg_config"
  expect_right "$folder/by_pkg_config"
fi
