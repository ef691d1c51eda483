#!/usr/bin/env bash
# Installs the Debian packages of the named groups (tools/packages.txt) that are missing; default: build and test.
# Installs only as root or with a sudo that asks nothing; otherwise prints the one command to run, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v dpkg-query >/dev/null; then
  echo "bootstrap: not a Debian system; the packages of tools/packages.txt are taken as given" >&2
  exit 0
fi

declare -A wanted=() provided_by=()
groups=" ${*:-build test} "
while read -r group package command _; do
  [[ -z $group || $group == \#* || $groups != *" $group "* ]] && continue
  wanted[$package]=1
  provided_by[$package]=$command
done <tools/packages.txt

while read -r status package; do
  if [[ $status == installed ]]; then unset "wanted[$package]"; fi
done < <(dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' "${!wanted[@]}" 2>/dev/null || true)

missing=()
for package in "${!wanted[@]}"; do
  command=${provided_by[$package]}
  if [[ -n $command ]] && command -v "$command" >/dev/null; then continue; fi
  missing+=("$package")
done
if ((${#missing[@]} == 0)); then exit 0; fi
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort)

as_root=()
if ((EUID != 0)); then
  if ! sudo -n true 2>/dev/null; then
    echo "bootstrap: some packages are missing. Run this, then try again:" >&2
    echo "  sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends ${missing[*]}'" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi

echo "bootstrap: installing ${missing[*]}" >&2
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >&2; }
apt update || echo "bootstrap: could not refresh all package lists; trying with what there is" >&2
apt install -y --no-install-recommends "${missing[@]}"
