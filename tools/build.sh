#!/usr/bin/env bash
# build.sh DIRECTORY OPTIONS…: runs `cmake --build` while it holds a lock on the directory, so that builds in the same
# directory run one after the other.
set -euo pipefail
exec flock "$1" cmake --build "$@"
