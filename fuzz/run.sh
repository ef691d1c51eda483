#!/usr/bin/env bash
# run.sh NAME PROGRAM NEW-DIR: fuzzes for FUZZ_SECONDS (default 10), starting from the committed corpus of NAME.
# FUZZ_SEED fixes the sequence of inputs; without it every run tries different ones.
# Inputs that cover new code are written to NEW-DIR; with FUZZ_KEEP=1 the useful ones are added to the committed corpus at
# the end. Fails on a crash, a leak, a hang or excessive memory use, and prints the path of the input.
set -euo pipefail
name=$1 program=$2 new=$3
here=$(cd "$(dirname "$0")" && pwd)
corpus=$here/corpus/$name

mkdir -p "$corpus" "$new"
"$program" "$new" "$corpus" -max_total_time="${FUZZ_SECONDS:-10}" -seed="${FUZZ_SEED:-0}" \
  -timeout=10 -rss_limit_mb=2048 -max_len=65536 -dict="$here/json.dict" \
  -artifact_prefix="$new-failed-" -print_final_stats=1 -verbosity=0

if [[ ${FUZZ_KEEP:-0} == 1 ]]; then
  # Keeps the fewest inputs that cover all code. Hit counts are ignored; otherwise the corpus would grow without bound.
  "$program" -set_cover_merge=1 -use_counters=0 "$corpus" "$new"
fi
