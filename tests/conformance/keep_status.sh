#!/bin/sh
# keep_status.sh FILE PROGRAM URL: runs the program and keeps its exit status in FILE.
"$2" "$3"
status=$?
echo "$status" >"$1"
exit "$status"
