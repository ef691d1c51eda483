#!/usr/bin/env bash
# Checks that no file of the project contains a path of a developer's machine, a package registry host or a TODO comment.
set -euo pipefail
cd "$(dirname "$0")/../.."

mapfile -t files < <(tools/lint/files.sh | grep -vE '^(fuzz/corpus/|tools/lint/selfspeak\.sh$|LICENSE$)')
failed=0
# reject_pattern DESCRIPTION PATTERN [EXCLUDED-FILES-REGEX]: reports all lines that match PATTERN.
reject_pattern() {
  local matches
  matches=$(printf '%s\0' "${files[@]}" | { if [[ -n ${3:-} ]]; then grep -zvE "$3"; else cat; fi; } |
    xargs -0 grep -InE -- "$2" || true)
  if [[ -n $matches ]]; then
    printf '%s:\n%s\n' "$1" "$matches"
    failed=1
  fi
}

reject_pattern 'path of a developer machine' '(^|[^[:alnum:]_./-])/(work/|root/|home/[a-z])'
# Tests create temporary directories; an address in an example may be in /tmp.
reject_pattern 'path in /tmp' '(^|[^[:alnum:]_./-])/tmp(/|\b)' '^tests/|\.md$|^examples/'
reject_pattern 'unfinished work' '\b(TODO|FIXME|XXX)\b'
reject_pattern 'host of a package registry' '\b(registry|deb|pypi|packages)\.[a-z0-9-]+\.(org|com|io|net)\b'
if ((failed == 0)); then echo "${#files[@]} files, no violations"; fi
exit "$failed"
