#!/usr/bin/env bash
# install.sh DIRECTORY: the packages of package.json into DIRECTORY, once, and the scripts beside this one, always (Node looks
# for packages above the script). DIRECTORY/node is the Node to run them with.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

for part in servers clients; do
  rm -rf "$part"
  cp -r "$here/$part" "$part"
done
if cmp -s "$here/package.json" installed.json; then exit 0; fi

if ! command -v npm >/dev/null; then
  echo "interop: npm is not installed; tools/bootstrap.sh test installs it" >&2
  exit 1
fi
rm -rf node_modules node installed.json
cp "$here/package.json" package.json
# Nothing here needs an install script to run. The deadline is for a registry that does not answer at all.
if ! timeout --kill-after=10 480 npm install --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error \
  --fetch-retries=0 --fetch-timeout=60000 </dev/null; then
  echo "interop: npm could not install the packages of tests/interop/package.json; is the package registry in reach?" >&2
  exit 1
fi
# Of the Nodes in package.json, npm installs the one for this machine. Not all versions of npm put it into .bin.
ln -sfn node_modules/node-linux-*/bin/node node
if ! ./node --version; then
  echo "interop: there is no Node for this machine in tests/interop/package.json" >&2
  exit 1
fi
mv package.json installed.json
