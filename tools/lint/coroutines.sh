#!/usr/bin/env bash
# coroutines.sh BUILD-DIR: checks the coroutine rules of coroutines.query in every file that contains a coroutine, with the
# compile commands of the build directory.
# coroutines.sh --self-test: tests the rules. In probes/*.cpp, and in a header of the same name, a rule must flag exactly the
# lines that are marked "flagged: C1" (with the name of the rule).
set -euo pipefail
cd "$(dirname "$0")/../.."

# query FILE OPTIONS…: prints violations as "file:line: rule: description". A file that clang-query cannot parse is a
# violation.
query() {
  local file=$1 output expected_matchers completed_matchers
  shift
  output=$(clang-query-19 -f tools/lint/coroutines.query "$file" "$@" 2>&1) || true
  sed -nE 's/^([^ ]+):([0-9]+):[0-9]+: note: "(C[0-9].*)" binds here$/\1:\2: \3/p' <<<"$output" | sed "s|^$PWD/||" | sort -u
  expected_matchers=$(grep -c '^match ' tools/lint/coroutines.query)
  completed_matchers=$(grep -cE '^[0-9]+ match(es)?\.$' <<<"$output") || true
  if [[ $file == bench/* ]] && grep -q "fatal error: '.*' file not found" <<<"$output"; then
    echo "$file: skipped, because the packages of the benchmarks are not installed" >&2
  elif ((expected_matchers != completed_matchers)) || grep -qE '(^|: )(fatal )?error:' <<<"$output"; then
    printf '%s:0: clang-query could not parse this file:\n%s\n' "$file" "$(grep -vE '^[0-9]+ match' <<<"$output" | head -n 20)"
  fi
}
export -f query

self_test() {
  local probe expected found failed=0
  for probe in tools/lint/probes/*.cpp; do
    expected=$(grep -HnoE 'flagged: C[0-9]$' "${probe%.cpp}".?pp | sed 's/:flagged//' | sort)
    found=$(query "$probe" -- -std=c++23 | sed -E 's/(: C[0-9]): .*/\1/' | sort -u)
    if ! diff -u --label "expected in $probe" --label found <(echo "$expected") <(echo "$found"); then failed=1; fi
    echo "$probe: $(wc -l <<<"$expected") violations expected, $(wc -l <<<"$found") found"
  done
  return "$failed"
}

# units BUILD-DIR: prints the translation units of the compile commands as lines of "unit source". A unity file has one line
# for each source file that it includes; any other unit is its own source.
units() {
  local unit
  sed -nE 's/^ *"file": "(.*)",?$/\1/p' "$1/compile_commands.json" | sort -u | while read -r unit; do
    if [[ $unit == */Unity/unity_* ]]; then
      sed -nE "s|^#include \"$PWD/(.*)\"|$unit \\1|p" "$unit"
    else
      echo "$unit ${unit#"$PWD"/}"
    fi
  done
}

check() {
  local build=$1 files included violations
  if [[ ! -f $build/compile_commands.json ]]; then
    echo "$build has no compile_commands.json: configure it first" >&2
    return 1
  fi
  # For headers, and for source files of no target, clang-query uses the flags of a similar file, which may lack an include
  # directory or a definition.
  export EXTRA="--extra-arg=-w --extra-arg=-fexceptions --extra-arg=-I$PWD/include --extra-arg=-I$PWD/src --extra-arg=-I$PWD/tests"
  local name
  for name in VERSION ECHO_SERVER REGISTRY_WRITER FIXTURE_DIR INTEROP_DIR SHARED_DIR SOURCE_DIR; do EXTRA+=" --extra-arg=-DFAIRLEAD_$name=\"\""; done
  mapfile -t files < <(tools/lint/files.sh '*.cpp' '*.hpp' | grep -v '^tools/' | xargs grep -lE '\bco_(await|return|yield)\b')
  # A header that one of the source files includes is checked there. Source files of the benchmarks do not count, because
  # they may be skipped.
  included=$(printf '%s\n' "${files[@]}" | grep '\.cpp$' | grep -v '^bench/' |
    xargs sed -nE 's|^#include ["<](.*\.hpp)[">].*|include/\1\nsrc/\1\ntests/\1|p')
  mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -vxF "$included")
  # The source files of a unity file are checked together, because most of the time is spent on the headers they include.
  local units
  mapfile -t units < <(awk 'NR == FNR { unit[$2] = $1; next } { print ($1 in unit) ? unit[$1] : $1 }' \
    <(units "$build") <(printf '%s\n' "${files[@]}") | sort -u)
  # shellcheck disable=SC2016  # expanded by the inner shell
  violations=$(printf '%s\n' "${units[@]}" |
    xargs -P "$(nproc)" -I{} bash -c 'query "$1" -p "$2" $EXTRA' _ {} "$build")
  if [[ -n $violations ]]; then
    echo "$violations"
    return 1
  fi
  echo "${#files[@]} files with coroutines, and the headers they include: no violations"
}

if [[ ${1:-} == --self-test ]]; then self_test; else check "${1:?build directory}"; fi
