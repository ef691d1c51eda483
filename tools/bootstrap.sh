#!/usr/bin/env bash
# bootstrap.sh [GROUP…]: installs the missing Debian packages of the given groups of tools/packages.txt (default: build and
# test). It installs only as root or with a sudo that needs no password; otherwise it prints the command to run and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v dpkg-query >/dev/null; then
  echo "bootstrap: not a Debian system; assuming that the packages of tools/packages.txt are installed" >&2
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

sudo_command=()
if ((EUID != 0)); then
  if ! sudo -n true 2>/dev/null; then
    echo "bootstrap: packages are missing. Run this command, then try again:" >&2
    echo "  sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends ${missing[*]}'" >&2
    exit 1
  fi
  sudo_command=(sudo -n)
fi

echo "bootstrap: installing ${missing[*]}" >&2
apt() { "${sudo_command[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >&2; }
apt update || echo "bootstrap: could not update all package lists; continuing with the existing lists" >&2
apt install -y --no-install-recommends "${missing[@]}"
