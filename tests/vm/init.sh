#!/bin/busybox sh
# The init process of the virtual machine that run.sh boots. Prints the result of each test; the last line is
# `vm: all passed` only if no test failed.
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
chmod 1777 /tmp
ip link set lo up
ulimit -n 65536
. /etc/vm # BUILD
top=/sys/fs/cgroup
tests=$BUILD/tests/test_process
fairlead=$BUILD/fairlead
failed=0

# report NAME STATUS [FILE]: prints the result of a test; if it failed, also the contents of the file.
report() {
  if [ "$2" = 0 ]; then echo "vm: ok: $1"; return; fi
  [ -z "$3" ] || cat "$3"
  echo "vm: FAILED: $1"
  failed=1
}

# Polls until the condition is true, for at most 30 seconds. (Not `wait`: orphans are also children of init.)
await() { # CONDITION
  for _ in $(seq 300); do
    eval "$1" && return
    usleep 100000
  done
}

# Delegates a cgroup as systemd does with Delegate=yes and DelegateSubgroup=gateway. The processes are in the subgroup,
# because a controller cannot be enabled for the children of a cgroup that has processes.
delegate() { # CGROUP USER
  mkdir -p "$1/gateway"
  for directory in "$1" "$1/gateway"; do
    chown "$2" "$directory" "$directory/cgroup.procs" "$directory/cgroup.threads" "$directory/cgroup.subtree_control"
  done
  setfattr -n user.delegate -v 1 "$1"
}

run_in() { # CGROUP USER COMMAND
  sh -c 'echo $$ >"$0/cgroup.procs" && exec su "$1" -c "$2"' "$@"
}

# Expects that all tests of the filter run (none is skipped) and pass.
expect_pass() { # NAME CGROUP USER [FILTER]
  run_in "$2" "$3" "$tests --gtest_brief=1 --gtest_color=no --gtest_filter=${4:-*}" >/tmp/log 2>&1 && ! grep -q SKIPPED /tmp/log
  report "$1" $? /tmp/log
}

# Expects that all tests of the filter are skipped, with this reason.
expect_skip() { # NAME CGROUP USER FILTER REASON
  run_in "$2" "$3" "$tests --gtest_brief=1 --gtest_color=no --gtest_filter=$4" >/tmp/log 2>&1
  [ $? = 0 ] && grep -q "$5" /tmp/log && grep -q 'PASSED  . 0 tests' /tmp/log
  report "$1" $? /tmp/log
}

test_cgroups() {
  echo '+memory +pids' >$top/cgroup.subtree_control
  mkdir $top/plain
  delegate $top/root root
  delegate $top/user user
  delegate $top/alone user
  cgroups='*Cgroup*'
  expect_pass 'service of root: all process tests' $top/root/gateway root
  expect_pass 'service of a user: cgroup tests' $top/user/gateway user "$cgroups"
  expect_pass 'root of the visible cgroup tree, as in a container: cgroup tests' $top root "$cgroups"
  expect_skip 'limits are skipped without a subgroup' $top/alone user 'CgroupLimitsTest.*' 'DelegateSubgroup='
  expect_skip 'cgroup that is not delegated is not used' $top/plain root '*RealCgroupTest.*:CgroupLimitsTest.*' 'has not been delegated'
}

gateway_config() {
  cat <<END
[servers.eater]
command = "$BUILD/fixtures/mcp_server"
containment = { cgroup = "required", memory_max = "32M", pids_max = 20 }
[servers.starved]
command = "$BUILD/fixtures/mcp_server"
containment = { cgroup = "required", memory_max = "64K" }
[servers.homeless]
command = "$BUILD/fixtures/mcp_server"
containment = { cgroup = "required", cgroup_parent = "/tmp" }
END
}

serve() { # ARGUMENTS
  run_in $top/service/gateway user "$fairlead serve --config /tmp/gateway.toml $1"
}

# Checks the error of a call as the client receives it.
test_call_out_of_memory() {
  printf '%s\n' \
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"vm","version":"1"}}}' \
    '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eater__eat","arguments":{}}}' |
    serve '--stdio --log-level off' >/tmp/log
  grep -q '"id":2,"error":.*"code":"out_of_memory","exitSignal":9,.*"remedy":"Raise memory_max' /tmp/log
  report 'call to a server over memory_max: the error has the cause and the remedy' $? /tmp/log
}

start_gateway() {
  serve '--terminator-manifest /tmp/manifest' >/tmp/log 2>&1 &
  await 'wget -q -O /tmp/health http://127.0.0.1:8808/health 2>/dev/null'
  gateway=$(pidof fairlead)
  # This process has left session, pipes and environment: only its cgroup identifies its server.
  stray=$($fairlead tools http://127.0.0.1:8808/mcp eater__stray 2>>/tmp/log)
  grep -q /service/fairlead- "/proc/$stray/cgroup"
  report 'stray process is in the cgroup of its server' $? /tmp/log
}

has_ended() { # PID
  ! grep -qs '^State:.[^Z]' "/proc/$1/status"
}

no_survivors() {
  [ -n "$stray" ] && has_ended "$stray" && ! ls -d $top/service/fairlead-* 2>/dev/null
}

test_gateway() {
  delegate $top/service user
  gateway_config >/tmp/gateway.toml
  test_call_out_of_memory

  start_gateway
  wget -q -O /tmp/health http://127.0.0.1:8808/health
  grep -q '"name":"starved"[^}]*memory limit of its cgroup exceeded[^}]*code: out_of_memory' /tmp/health
  report 'memory_max too small to start: /health has the cause' $? /tmp/health
  grep -q '"name":"homeless"[^}]*/tmp is not a cgroup[^}]*code: belt_unavailable' /tmp/health
  report 'required cgroup is missing: /health has the cause' $? /tmp/health
  kill -TERM $gateway
  await 'has_ended $gateway'
  no_survivors; report 'gateway ends: no process or cgroup of its servers is left' $? /tmp/log

  start_gateway
  grep -q '"cgroup":"/sys/fs/cgroup/service/fairlead-' /tmp/manifest; report 'manifest contains the cgroup' $? /tmp/manifest
  keeper=$(cat /proc/$gateway/task/$gateway/children)
  kill -STOP $gateway $keeper # so that neither notices the death of the other
  kill -KILL $keeper $gateway
  await 'has_ended $gateway'
  ! has_ended "$stray"; report 'gateway and keeper killed: stray process survives' $?
  su user -c "$fairlead terminate /tmp/manifest" >/tmp/log 2>&1 && grep -q "^$stray .*(cgroup)" /tmp/log && no_survivors
  report 'fairlead terminate finds the stray process by its cgroup and kills it' $? /tmp/log
}

echo "vm: Linux $(uname -r), $(nproc) processors"
test_cgroups
test_gateway
[ $failed = 1 ] || echo 'vm: all passed'
poweroff -f
