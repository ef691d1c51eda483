#!/usr/bin/env bash
# Every source in the house format (.clang-format)? With --fix, makes it so. One named version, since versions disagree.
set -euo pipefail
cd "$(dirname "$0")/../.."
clang_format=clang-format-14

mapfile -t files < <(tools/lint/files.sh '*.cpp' '*.hpp' '*.c' '*.h')
if [[ ${1:-} == --fix ]]; then
  "$clang_format" -i "${files[@]}"
  exit
fi
bad=$(printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I{} sh -c \
  "$clang_format --dry-run -Werror '{}' >/dev/null 2>&1 || echo '{}'" | sort)
if [[ -n $bad ]]; then
  printf 'not in the house format (make format mends it):\n%s\n' "$bad"
  exit 1
fi
echo "${#files[@]} files are formatted"
