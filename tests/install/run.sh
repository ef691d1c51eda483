#!/usr/bin/env bash
# run.sh BUILD-DIR: installs into a temporary prefix, moves the prefix, and builds and runs the consumer with it, once
# with find_package and once with pkg-config. The consumer includes every installed header. Then the program of the README
# is built and called with the commands of the README.
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/first" >"$scratch/install.log"
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix

cp -r "$here/consumer" "$scratch/source"
(cd "$prefix/include" && find fairlead -name '*.hpp' | sort) | sed 's/.*/#include "&"/' >"$scratch/source/headers.cpp"
test -s "$scratch/source/headers.cpp"
export LD_LIBRARY_PATH=$prefix/lib # for a shared library

echo "== find_package"
cmake -S "$scratch/source" -B "$scratch/by_cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/configure.log"
cmake --build "$scratch/by_cmake"
"$scratch/by_cmake/consumer"

echo "== pkg-config"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name fairlead.pc)")
read -ra flags < <(pkg-config --cflags --libs fairlead)
c++ -std=c++23 -Wall -Wextra -Werror "$scratch/source/main.cpp" -o "$scratch/by_pkg_config" "${flags[@]}"
"$scratch/by_pkg_config"

echo "== README"
mkdir "$scratch/readme"
PYTHONDONTWRITEBYTECODE=1 python3 "$here/readme_program.py" "$scratch/readme"
(cd "$scratch/readme" && PATH=$prefix/bin:$PATH bash -e commands.sh | tee output)
test "$(tail -n 1 "$scratch/readme/output")" = "$(cat "$scratch/readme/expected")"

echo "== program"
"$prefix/bin/fairlead" version

echo "== files for shells"
for file in man/man1/fairlead.1 man/man1/fairlead-serve.1 man/man1/fairlead-servers.1 bash-completion/completions/fairlead \
  zsh/vendor-completions/_fairlead fish/vendor_completions.d/fairlead.fish; do
  test -s "$prefix/share/$file" || { echo "share/$file is missing or empty" >&2; exit 1; }
done
bash -n "$prefix/share/bash-completion/completions/fairlead"
head -n 1 "$prefix/share/zsh/vendor-completions/_fairlead" | grep -x '#compdef fairlead'

echo "== keeper"
keeper=$prefix/libexec/fairlead-keeper
test -x "$keeper"
# A wrapper proves that the installed keeper is the one that runs.
printf '#!/bin/sh\necho ran >"%s/ran"\nexec "%s" "$@"\n' "$scratch" "$keeper" >"$scratch/wrapper"
chmod +x "$scratch/wrapper"
FAIRLEAD_KEEPER=$scratch/wrapper "$prefix/bin/fairlead" call "stdio:$prefix/bin/fairlead rpc" system.ping
test -s "$scratch/ran"
