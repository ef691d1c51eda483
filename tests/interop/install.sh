#!/usr/bin/env bash
# install.sh DIRECTORY: installs the packages of package.json in DIRECTORY, unless they are installed, and always copies the scripts
# there, because Node searches for packages in the directories above the script. DIRECTORY/node is the Node to run them with.
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
# No package needs an install script. The timeout is for a registry that does not respond.
if ! timeout --kill-after=10 480 npm install --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error \
  --fetch-retries=0 --fetch-timeout=60000 </dev/null; then
  echo "interop: npm could not install the packages of tests/interop/package.json; is the package registry reachable?" >&2
  exit 1
fi
# npm installs the Node package for this machine. Some versions of npm do not link it in .bin.
ln -sfn node_modules/node-linux-*/bin/node node
if ! ./node --version; then
  echo "interop: tests/interop/package.json has no Node for this machine" >&2
  exit 1
fi
mv package.json installed.json
