#!/usr/bin/env bash
# files.sh [GIT-PATHSPEC…]: prints the files of the project, one per line, relative to its root: the files that git tracks
# and the untracked files that it does not ignore. Outside a repository (an unpacked archive): all files except build/.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [[ -e .git ]]; then
  # safe.directory lets git read a tree that another user owns.
  git -c safe.directory="$PWD" ls-files --cached --others --exclude-standard -- "$@" | sort -u |
    while read -r file; do if [[ -f $file ]]; then echo "$file"; fi; done
else
  find . -path ./build -prune -o -type f -print | sed 's|^\./||' | sort | while read -r file; do
    for pattern in "${@:-*}"; do
      # shellcheck disable=SC2053  # $pattern is a glob
      if [[ $file == $pattern ]]; then echo "$file"; break; fi
    done
  done
fi
