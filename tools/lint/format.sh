#!/usr/bin/env bash
# format.sh [--fix]: checks that every source file is formatted as .clang-format requires; with --fix, formats the files.
# The version of clang-format is fixed, because versions format differently.
set -euo pipefail
cd "$(dirname "$0")/../.."
clang_format=clang-format-14

mapfile -t files < <(tools/lint/files.sh '*.cpp' '*.hpp' '*.c' '*.h')
if [[ ${1:-} == --fix ]]; then
  "$clang_format" -i "${files[@]}"
  exit
fi
unformatted=$(printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I{} sh -c \
  "$clang_format --dry-run -Werror '{}' >/dev/null 2>&1 || echo '{}'" | sort)
if [[ -n $unformatted ]]; then
  printf 'not formatted (run `make format`):\n%s\n' "$unformatted"
  exit 1
fi
echo "${#files[@]} files are formatted"
