# Sourced before each shell example. Examples are run as printed; the functions below replace only waiting.
set -m  # job control, for `kill %1`

# Succeeds if the process listens on a TCP or Unix socket.
_listens() {
  local inode
  for inode in $(ls -l "/proc/$1/fd" 2>/dev/null | sed -n 's/.*socket:\[\([0-9]*\)\]$/\1/p'); do
    awk -v inode="$inode" '($4 == "0A" && $10 == inode) || ($4 == "00010000" && $7 == inode) { found = 1 } END { exit !found }' \
      /proc/net/tcp /proc/net/tcp6 /proc/net/unix && return 0
  done
  return 1
}

# `sleep 1` after `fairlead serve &` waits until the gateway listens, however long that takes.
sleep() {
  local pid deadline=$((SECONDS + 60))
  for pid in $(jobs -rp); do
    until _listens "$pid" || ! kill -0 "$pid" 2>/dev/null || ((SECONDS > deadline)); do command sleep 0.05; done
  done
}

# An answer with an error status is a failure.
curl() { command curl --silent --show-error --fail-with-body "$@"; }

# Runs a program that serves until it is stopped, and stops it when it listens. Its exit status must be 0.
_serve_and_stop() {
  "$@" </dev/null &
  sleep
  kill -TERM $! 2>/dev/null || true
  wait $!
}

# The variables of an example are those of the next one, as in the reader's shell.
_save_variables() {
  declare -p | grep -E '^declare -(-|x) [A-Za-z][A-Za-z0-9_]*="[^"]*"$' |
    grep -vE ' (PWD|OLDPWD|SHLVL|SECONDS|RANDOM|BASH[A-Z_]*|PPID|UID|EUID)=' >"$1"
}
