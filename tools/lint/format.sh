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
# Starting clang-format takes longer than checking most files, so one process checks many.
if ! output=$(printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 64 "$clang_format" --dry-run -Werror 2>&1); then
  unformatted=$(sed -nE 's/^([^: ]+):[0-9]+:[0-9]+: error: .*/\1/p' <<<"$output" | sort -u)
  printf 'not formatted (run `make format`):\n%s\n' "${unformatted:-$output}"
  exit 1
fi
echo "${#files[@]} files are formatted"
