#!/usr/bin/env bash
# Nothing in the project speaks of the machine it was written on, or puts work off in a comment.
set -euo pipefail
cd "$(dirname "$0")/../.."

mapfile -t files < <(tools/lint/files.sh | grep -vE '^(fuzz/corpus/|tools/lint/selfspeak\.sh$|LICENSE$)')
bad=0
# refuse WHAT PATTERN [FILES-REGEX-TO-LEAVE-OUT]
refuse() {
  local found
  found=$(printf '%s\0' "${files[@]}" | { if [[ -n ${3:-} ]]; then grep -zvE "$3"; else cat; fi; } |
    xargs -0 grep -InE -- "$2" || true)
  if [[ -n $found ]]; then
    printf '%s:\n%s\n' "$1" "$found"
    bad=1
  fi
}

refuse 'a path of somebody'"'"'s machine' '(^|[^[:alnum:]_./-])(/work/|/root/|/home/[a-z])'
# Tests make scratch directories when they run; an address in an example may lie in /tmp.
refuse 'a path in /tmp' '(^|[^[:alnum:]_./-])/tmp(/|\b)' '^tests/|\.md$|^examples/'
refuse 'work put off' '\b(TODO|FIXME|XXX)\b'
refuse 'the host of a package registry' '\b(registry|deb|pypi|packages)\.[a-z0-9-]+\.(org|com|io|net)\b'
if ((bad == 0)); then echo "${#files[@]} files, nothing to refuse"; fi
exit "$bad"
