#!/usr/bin/env bash
# files.sh [GIT-PATHSPEC…]: the files of the project, one a line, relative to its root: those git knows and those it
# would add. Outside a repository (an unpacked archive) all but build/.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [[ -e .git ]]; then
  # A tree that belongs to somebody else is fine to read.
  git -c safe.directory="$PWD" ls-files --cached --others --exclude-standard -- "$@" | sort -u |
    while read -r file; do if [[ -f $file ]]; then echo "$file"; fi; done
else
  find . -path ./build -prune -o -type f -print | sed 's|^\./||' | sort | while read -r file; do
    for pattern in "${@:-*}"; do
      # shellcheck disable=SC2053  # a pattern is meant
      if [[ $file == $pattern ]]; then echo "$file"; break; fi
    done
  done
fi
