#!/bin/busybox sh
# The first process of the machine that run.sh boots. It says how each part went; the last line is `vm: all passed`, or not.
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

# say WHAT STATUS [FILE]: the file is shown when it went wrong.
say() {
  if [ "$2" = 0 ]; then echo "vm: ok: $1"; return; fi
  [ -z "$3" ] || cat "$3"
  echo "vm: FAILED: $1"
  failed=1
}

# Until it is so, for half a minute. (Not `wait`: orphans are children of ours too.)
await() { # CONDITION
  for _ in $(seq 300); do
    eval "$1" && return
    usleep 100000
  done
}

# As systemd does it with Delegate=yes; DelegateSubgroup=gateway is where the processes are, as a controller cannot be
# switched on above one that has some.
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

# Every test in it runs, and passes.
passes() { # WHAT CGROUP USER [FILTER]
  run_in "$2" "$3" "$tests --gtest_brief=1 --gtest_color=no --gtest_filter=${4:-*}" >/tmp/log 2>&1 && ! grep -q SKIPPED /tmp/log
  say "$1" $? /tmp/log
}

# None of what it has been told to find is run, and it says why.
refuses() { # WHAT CGROUP USER FILTER WHY
  run_in "$2" "$3" "$tests --gtest_brief=1 --gtest_color=no --gtest_filter=$4" >/tmp/log 2>&1
  [ $? = 0 ] && grep -q "$5" /tmp/log && grep -q 'PASSED  . 0 tests' /tmp/log
  say "$1" $? /tmp/log
}

tests_of_cgroups() {
  echo '+memory +pids' >$top/cgroup.subtree_control
  mkdir $top/plain
  delegate $top/root root
  delegate $top/user user
  delegate $top/alone user
  cgroups='*Cgroup*'
  passes 'a service of root: all tests of processes' $top/root/gateway root
  passes 'a service of a user: cgroups' $top/user/gateway user "$cgroups"
  passes 'the root of what is seen, as in a container: cgroups' $top root "$cgroups"
  refuses 'limits need a subgroup' $top/alone user 'CgroupLimits.*' 'DelegateSubgroup='
  refuses 'what is not delegated is not used' $top/plain root '*RealCgroup.*:CgroupLimits.*' 'has not been delegated'
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

# The error of a call, as a client gets it.
test_of_a_call_out_of_memory() {
  printf '%s\n' \
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"vm","version":"1"}}}' \
    '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eater__eat","arguments":{}}}' |
    serve '--stdio --log-level off' >/tmp/log
  grep -q '"id":2,"error":.*"code":"out_of_memory","exitSignal":9,.*"remedy":"Raise memory_max' /tmp/log
  say 'a server over memory_max: the call says so, and what to raise' $? /tmp/log
}

start_gateway() {
  serve '--terminator-manifest /tmp/manifest' >/tmp/log 2>&1 &
  await 'wget -q -O /tmp/health http://127.0.0.1:8808/health 2>/dev/null'
  gateway=$(pidof fairlead)
  # One that has left session, pipes and environment: only its cgroup tells whose it is.
  stray=$($fairlead tools http://127.0.0.1:8808/mcp eater__stray 2>>/tmp/log)
  grep -q /service/fairlead- "/proc/$stray/cgroup"
  say 'a stray is in the cgroup of its server' $? /tmp/log
}

has_ended() { # PID
  ! grep -qs '^State:.[^Z]' "/proc/$1/status"
}

nothing_is_left() {
  [ -n "$stray" ] && has_ended "$stray" && ! ls -d $top/service/fairlead-* 2>/dev/null
}

tests_of_the_gateway() {
  delegate $top/service user
  gateway_config >/tmp/gateway.toml
  test_of_a_call_out_of_memory

  start_gateway
  wget -q -O /tmp/health http://127.0.0.1:8808/health
  grep -q '"name":"starved"[^}]*out of the memory its cgroup has[^}]*code: out_of_memory' /tmp/health
  say 'memory_max too small to start with: its health says so' $? /tmp/health
  grep -q '"name":"homeless"[^}]*/tmp is not a cgroup[^}]*code: belt_unavailable' /tmp/health
  say 'a cgroup that is required and not there: its health says so' $? /tmp/health
  kill -TERM $gateway
  await 'has_ended $gateway'
  nothing_is_left; say 'the gateway ends: nothing is left of its servers' $? /tmp/log

  start_gateway
  grep -q '"cgroup":"/sys/fs/cgroup/service/fairlead-' /tmp/manifest; say 'the manifest names the cgroup' $? /tmp/manifest
  keeper=$(cat /proc/$gateway/task/$gateway/children)
  kill -STOP $gateway $keeper # neither sees the other die
  kill -KILL $keeper $gateway
  await 'has_ended $gateway'
  ! has_ended "$stray"; say 'gateway and keeper killed: a stray lives on' $?
  su user -c "$fairlead terminate /tmp/manifest" >/tmp/log 2>&1 && grep -q "^$stray .*(cgroup)" /tmp/log && nothing_is_left
  say 'fairlead terminate finds it by its cgroup and ends it' $? /tmp/log
}

echo "vm: Linux $(uname -r), $(nproc) processors"
tests_of_cgroups
tests_of_the_gateway
[ $failed = 1 ] || echo 'vm: all passed'
poweroff -f
