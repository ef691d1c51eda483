#!/usr/bin/env bash
# run.sh NAME PROGRAM NEW-DIR: fuzzes for FUZZ_SECONDS (default 10), starting from the kept corpus of NAME.
# Inputs that reach new code go to NEW-DIR; with FUZZ_KEEP=1 the useful ones among them join the kept corpus at the
# end. A crash, a leak, a hang or too much memory fails, and names the input that did it.
set -euo pipefail
name=$1 program=$2 new=$3
here=$(cd "$(dirname "$0")" && pwd)
kept=$here/corpus/$name

mkdir -p "$kept" "$new"
"$program" "$new" "$kept" -max_total_time="${FUZZ_SECONDS:-10}" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
  -dict="$here/json.dict" -artifact_prefix="$new-failed-" -print_final_stats=1 -verbosity=0

if [[ ${FUZZ_KEEP:-0} == 1 ]]; then
  # The fewest inputs that reach all code: how often it is reached does not count, or the corpus would grow for ever.
  "$program" -set_cover_merge=1 -use_counters=0 "$kept" "$new"
fi
