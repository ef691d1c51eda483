#!/bin/sh
# keep_status.sh FILE PROGRAM URL: runs the program and writes its exit status to FILE.
"$2" "$3"
status=$?
echo "$status" >"$1"
exit "$status"
