#!/usr/bin/env bash
# Usage: deb_test.sh BUILD CPACK SOURCE
# Debian packages of a build, as `cpack -G DEB` makes them: their contents, dependencies and notices; lintian's word where
# it is installed; and the tool, library and headers out of them, unpacked into one folder, do work.
set -euo pipefail
build=$(realpath "$1") cpack=$2 source=$(realpath "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAIL: $*"; exit 1; }

"$cpack" -G DEB --config "$build/CPackConfig.cmake" -B "$folder" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
version=$(sed -n 's/^project(trireme VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
minor=${version%.*}
shopt -s nullglob
packages=("$folder"/*.deb)
((${#packages[@]} == 3)) || fail "made ${packages[*]}"

# holds PACKAGE PATH...: what it must hold; everything else belongs to no test.
holds() {
  local package=$1 deb path
  deb=$(echo "$folder/$1"_"$version"_*.deb)
  shift
  dpkg-deb --contents "$deb" | awk '{print $6}' >"$folder/contents"
  for path in "$@" "share/doc/$package/copyright" "share/doc/$package/changelog.gz"; do
    grep -qE "^\./usr/$path$" "$folder/contents" || fail "$package has no usr/$path"
  done
  dpkg-deb --extract "$deb" "$folder/root"
}
holds "libtrireme$minor" 'lib(/.*)?/libtrireme\.so\.'"$minor" 'lib(/.*)?/libtrireme\.so\.'"$version"
holds libtrireme-dev include/trireme.h include/trireme/plan.hpp include/trireme/ops.hpp 'lib(/.*)?/libtrireme\.a' \
  'lib(/.*)?/libtrireme\.so' 'lib(/.*)?/pkgconfig/trireme\.pc' 'lib(/.*)?/cmake/trireme/trireme-config\.cmake'
holds trireme bin/trireme share/man/man1/trireme.1.gz share/bash-completion/completions/trireme \
  share/zsh/vendor-completions/_trireme share/fish/vendor_completions.d/trireme.fish

depends() { dpkg-deb --field "$(echo "$folder/$1"_"$version"_*.deb)" Depends; }
[[ $(depends libtrireme-dev) == *"libtrireme$minor (= $version)"* ]] || fail "libtrireme-dev depends on $(depends libtrireme-dev)"
for package in "libtrireme$minor" trireme; do
  [[ $(depends $package) == *libc6* ]] || fail "$package depends on $(depends $package)"
  [[ $(depends $package) != *asmjit* && $(depends $package) != *fmt* ]] || fail "$package depends on $(depends $package)"
done
for name in fmt AsmJit xxHash CLI11 'JSON for Modern C++'; do
  grep -qx "$name" "$folder/root/usr/share/doc/trireme/copyright" || fail "the copyright file says nothing of $name"
done

root=$folder/root/usr
[[ $("$root/bin/trireme" --version) == "$version" ]] || fail "the tool says $("$root/bin/trireme" --version)"
so=$(find "$root/lib" -name "libtrireme.so.$minor")
${CC:-cc} -I"$root/include" "$source/tests/package/c/main.c" "$so" -Wl,-rpath,"$(dirname "$so")" -o "$folder/from_c"
[[ $("$folder/from_c") == right ]] || fail "a program built from the packages said $("$folder/from_c")"

if command -v lintian >/dev/null; then
  said=$(lintian --allow-root --fail-on error,warning "${packages[@]}" 2>&1) || fail "lintian: $said"
fi
