#!/usr/bin/env bash
# Runs the named make targets one after the other, all of them even when one fails, and closes with one summary in
# the manner of ctest. Fails when any of them failed. What each said is kept in build/test/<target>.log.
# A target that is written +TARGET runs beside the others, at the lowest priority: tests wait more than they compute.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
mkdir -p build/test

passed=0 total=0 failures=() rows=() untried=()
begin=$SECONDS

# What ctest said last, "<failed> <total>"; nothing when it never came to that.
counts() { sed -nE 's/.*% tests passed, ([0-9]+) tests failed out of ([0-9]+).*/\1 \2/p' "$1" | tail -n 1; }
skipped() { grep -cE '^ *[0-9]+/[0-9]+ Test +#.*\*\*\*Skipped' "$1"; }
# The foreign SDKs that were skipped, with the reason; tests/interop/peers/run.py leaves it in the build folder.
not_tried() {
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: interop\.peer\.([^ ]+) .*\*\*\*Skipped.*/\1/p' "$1" | while read -r peer; do
    printf '%s (%s)\n' "$peer" "$(cat "build/release/interop/peers/$peer.absent" 2>/dev/null || echo "no reason given")"
  done
}
# The names below "The following tests FAILED:", with the reason.
failed_names() { sed -nE '/^The following tests FAILED:/,/^$/ s/^[[:space:]]+[0-9]+ - (.*)/\1/p' "$1"; }

# run TARGET: shows what it says, and keeps it with the exit status and the seconds it took.
run() {
  local start=$SECONDS status
  printf '\n=== make %s\n' "$1"
  "${MAKE:-make}" "$1" 2>&1 | tee "build/test/$1.log"
  status=${PIPESTATUS[0]}
  echo "$status $((SECONDS - start))" >"build/test/$1.end"
}

# count TARGET: adds what it said to the summary.
count() {
  local target=$1 log=build/test/$1.log name line status=none seconds=0 step_failed step_total
  if [[ -f build/test/$1.end ]]; then read -r status seconds <"build/test/$1.end"; fi
  read -r step_failed step_total < <(counts "$log"; echo "0 0")
  while read -r name; do failures+=("$target: $name"); done < <(failed_names "$log")
  # A target that failed without a failing test (it did not build) counts as one.
  if [[ $status != 0 ]] && ((step_failed == 0)); then
    step_failed=1 step_total=$((step_total + 1))
    failures+=("$target: make $target ended with status $status, see $log")
  fi
  while read -r line; do untried+=("$line"); done < <(not_tried "$log")
  total=$((total + step_total))
  passed=$((passed + step_total - step_failed))
  rows+=("$(printf '  %-12s %6d passed %6d failed %6d skipped %7d sec' "$target" \
    $((step_total - step_failed - $(skipped "$log"))) "$step_failed" "$(skipped "$log")" "$seconds")")
}

targets=() beside=()
for target in "$@"; do
  if [[ $target == +* ]]; then beside+=("${target#+}"); else targets+=("$target"); fi
done
rm -f build/test/*.end  # of an earlier run
trap 'trap - TERM; kill 0' INT TERM  # what runs beside ends too
(
  renice -n 19 -p "$BASHPID" >/dev/null
  for target in "${beside[@]}"; do run "$target"; done
) >/dev/null 2>&1 &
for target in "${targets[@]}"; do
  run "$target"
  count "$target"
done
wait
for target in "${beside[@]}"; do
  cat "build/test/$target.log"
  count "$target"
done

printf '\n=== Summary\n'
printf '%s\n' "${rows[@]}"
if ((${#untried[@]})); then
  printf '  not tried here: %s\n' "${untried[@]}"
fi
failed=$((total - passed))
printf '\n%d%% tests passed, %d tests failed out of %d\n' $((total ? passed * 100 / total : 0)) "$failed" "$total"
printf '\nTotal Test time (real) = %d sec\n' $((SECONDS - begin))
if ((${#failures[@]})); then
  printf '\nThe following tests FAILED:\n'
  printf '\t%s\n' "${failures[@]}"
fi
((failed == 0 && total > 0))
