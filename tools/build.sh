#!/usr/bin/env bash
# build.sh DIRECTORY OPTIONS…: what `cmake --build` does, after any other that builds in the same directory.
set -euo pipefail
exec flock "$1" cmake --build "$@"
