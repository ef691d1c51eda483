#!/usr/bin/env bash
# test.sh [+]TARGET…: runs make targets one after the other, continues after a failure, and prints a summary in the format
# of ctest. Fails if any target failed. The output of each target is stored in build/test/<target>.log.
# Targets written as +TARGET run in the background at the lowest priority, because tests wait more than they compute.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
mkdir -p build/test

passed=0 total=0 failures=() summary_rows=() skipped_peers=()
start_time=$SECONDS

# ctest_counts LOG: prints "<failed> <total>" of the last ctest summary, or nothing if there is none.
ctest_counts() { sed -nE 's/.*% tests passed, ([0-9]+) tests failed out of ([0-9]+).*/\1 \2/p' "$1" | tail -n 1; }
# skipped_count LOG: prints the number of skipped tests.
skipped_count() { grep -cE '^ *[0-9]+/[0-9]+ Test +#.*\*\*\*Skipped' "$1"; }
# list_skipped_peers LOG: prints the skipped interop peers with the reason, which tests/interop/peers/run.py stores in the
# build directory.
list_skipped_peers() {
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: interop\.peer\.([^ ]+) .*\*\*\*Skipped.*/\1/p' "$1" | while read -r peer; do
    printf '%s (%s)\n' "$peer" "$(cat "build/release/interop/peers/$peer.absent" 2>/dev/null || echo "no reason given")"
  done
}
# failed_tests LOG: prints the names below "The following tests FAILED:", with the reason.
failed_tests() { sed -nE '/^The following tests FAILED:/,/^$/ s/^[[:space:]]+[0-9]+ - (.*)/\1/p' "$1"; }

# run_target TARGET: runs the target and shows its output. Stores the output in TARGET.log, and the exit status and the
# duration in seconds in TARGET.end.
run_target() {
  local start=$SECONDS status
  printf '\n=== make %s\n' "$1"
  "${MAKE:-make}" "$1" 2>&1 | tee "build/test/$1.log"
  status=${PIPESTATUS[0]}
  echo "$status $((SECONDS - start))" >"build/test/$1.end"
}

# add_to_summary TARGET: adds the stored results of the target to the summary.
add_to_summary() {
  local target=$1 log=build/test/$1.log name line status=none seconds=0 target_failed target_total
  if [[ -f build/test/$1.end ]]; then read -r status seconds <"build/test/$1.end"; fi
  read -r target_failed target_total < <(ctest_counts "$log"; echo "0 0")
  while read -r name; do failures+=("$target: $name"); done < <(failed_tests "$log")
  # A target that failed without a failed test (for example, in the build) counts as one failed test.
  if [[ $status != 0 ]] && ((target_failed == 0)); then
    target_failed=1 target_total=$((target_total + 1))
    failures+=("$target: make $target failed with status $status, see $log")
  fi
  while read -r line; do skipped_peers+=("$line"); done < <(list_skipped_peers "$log")
  total=$((total + target_total))
  passed=$((passed + target_total - target_failed))
  summary_rows+=("$(printf '  %-12s %6d passed %6d failed %6d skipped %7d sec' "$target" \
    $((target_total - target_failed - $(skipped_count "$log"))) "$target_failed" "$(skipped_count "$log")" "$seconds")")
}

targets=() background_targets=()
for target in "$@"; do
  if [[ $target == +* ]]; then background_targets+=("${target#+}"); else targets+=("$target"); fi
done
rm -f build/test/*.end  # remove the results of an earlier run
trap 'trap - TERM; kill 0' INT TERM  # also ends the background targets
(
  renice -n 19 -p "$BASHPID" >/dev/null
  for target in "${background_targets[@]}"; do run_target "$target"; done
) >/dev/null 2>&1 &
for target in "${targets[@]}"; do
  run_target "$target"
  add_to_summary "$target"
done
wait
for target in "${background_targets[@]}"; do
  cat "build/test/$target.log"
  add_to_summary "$target"
done

printf '\n=== Summary\n'
printf '%s\n' "${summary_rows[@]}"
if ((${#skipped_peers[@]})); then
  printf '  not tried here: %s\n' "${skipped_peers[@]}"
fi
failed=$((total - passed))
printf '\n%d%% tests passed, %d tests failed out of %d\n' $((total ? passed * 100 / total : 0)) "$failed" "$total"
printf '\nTotal Test time (real) = %d sec\n' $((SECONDS - start_time))
if ((${#failures[@]})); then
  printf '\nThe following tests FAILED:\n'
  printf '\t%s\n' "${failures[@]}"
fi
((failed == 0 && total > 0))
