#!/bin/sh
# Runs as the first process of a machine with another kernel: see tools/check-kernel. Prints TAP on its console.
# shellcheck shell=dash disable=SC2016,SC2209  # what is quoted is for the sandbox; env is the program
export PATH=/usr/bin HOME=/root
if [ ! -e /dw/moved ]; then # the first root cannot be left by pivot_root: a tmpfs takes its place
    mount -t proc proc /proc
    mount -t tmpfs -o mode=755 tmpfs /new
    for name in usr bin sbin lib lib64 etc dw init; do cp -a "/$name" /new/; done
    mkdir -p /new/proc /new/sys /new/dev /new/tmp /new/root /new/run /new/var/lib
    : >/new/dw/moved
    umount /proc
    exec switch_root /new /init
fi
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts -o ptmxmode=666 devpts /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
chmod 1777 /tmp /dev/shm
insmod /dw/overlay.ko
ip link set lo up
count=0
echo "# kernel $(uname -r)"

check() { # check NAME CONDITION-STATUS: what was printed last is shown when it failed
    count=$((count + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $count - $1"
    else
        head -c 3000 /tmp/out | sed 's/^/# /'
        echo "not ok $count - $1"
    fi
}
says() { grep -q -- "$1" /tmp/out; }

# dw WHO ARG...: doorward as root or as the user, output to /tmp/out, its status in $status
dw() {
    who=$1
    shift
    if [ "$who" = root ]; then
        timeout -s KILL 60 env XDG_RUNTIME_DIR=/run /dw/doorward "$@" >/tmp/out 2>&1 </dev/null
    else
        timeout -s KILL 60 /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps=-all env HOME=/tmp/user XDG_RUNTIME_DIR=/tmp/user/run /dw/doorward "$@" >/tmp/out 2>&1 </dev/null
    fi
    status=$?
}

# into GROUP COMMAND...: in that control group, in a process of its own
into() {
    group=$1
    shift
    (read -r pid _ </proc/self/stat && echo "$pid" >"$group/cgroup.procs" && "$@")
}

mkdir -p /tmp/user/run /tmp/input /tmp/input/folder
echo text >/tmp/input/file
echo text >/tmp/input/folder/file
chmod 700 /tmp/user/run
chown -R user:user /tmp/user /tmp/input

# walls WHO OPTION...: a start, and inputs
walls() {
    who=$1
    shift
    dw "$who" run "$@" -- /bin/true
    check "$who: /bin/true runs behind whole walls" "$status"
    dw "$who" run "$@" -- sh -c 'id -u; test ! -e /dw && echo away'
    says 1000 && says away
    check "$who: as uid 1000, and the host is not in sight" $?
    dw "$who" run "$@" --copy /tmp/input:/work -- sh -c 'cat /work/folder/file && echo new >/work/new'
    check "$who: an input is copied" "$status"
    dw "$who" run "$@" --overlay /tmp/input:/work -- sh -c 'echo ran'
}

# limits WHO: each cap holds, and is told as what it is
limits() {
    who=$1
    dw "$who" run --memory 48MiB --disk 16MiB -- dd if=/dev/zero of=/dev/null bs=200M count=1
    [ "$status" -eq 137 ] && says limit:memory
    check "$who: memory: the kernel ends it, and the stop is limit:memory with 137 ($status)" $?
    dw "$who" run --memory 48MiB --disk 16MiB -- sh -c 'dd if=/dev/zero of=/dev/null bs=200M count=1; echo on'
    [ "$status" -eq 0 ] && says '^on'
    check "$who: memory: a child's end leaves its parent alone ($status)" $?
    dw "$who" run --processes 12 -- sh -c 'n=0; while [ $n -lt 30 ]; do sleep 1 & n=$((n+1)); done; wait; echo no'
    says "can't fork"
    check "$who: processes: fork fails at the cap ($status)" $?
    dw "$who" run --cpus 0.2 --timeout 20s --json -- sh -c 'n=0; while [ $n -lt 30000 ]; do n=$((n+1)); done; cat /proc/uptime'
    check "$who: cpus: runs with a fifth of one ($status)" "$status"
}

# switch WHO: freeze, thaw, stop
switch() {
    who=$1
    dw "$who" run -- true
    if [ "$who" = root ]; then as=env; else as="/usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps=-all env HOME=/tmp/user XDG_RUNTIME_DIR=/tmp/user/run"; fi
    # shellcheck disable=SC2086  # words
    XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run} $as /dw/doorward run -- sh -c 'while :; do :; done' >/tmp/frozen 2>&1 </dev/null &
    background=$!
    run='' n=0
    while [ -z "$run" ] && [ "$n" -lt 100 ]; do
        sleep 0.1
        n=$((n + 1))
        dw "$who" ps --json
        run=$(sed -n 's/.*"run": *"\([0-9A-Z]*\)"[^}]*"state": *"running".*/\1/p' /tmp/out)
    done
    [ -n "$run" ]
    check "$who: a run is seen" $?
    sleep 1
    dw "$who" freeze "$run"
    check "$who: freeze" "$status"
    worker=
    for folder in /proc/[0-9]*; do # the one that works: it has used the most time of its own
        grep -q '^sh.-c.while :; do :; done' "$folder/cmdline" 2>/dev/null && worker=${folder#/proc/}
    done
    a=$(cut -d' ' -f14 "/proc/$worker/stat")
    sleep 0.5
    b=$(cut -d' ' -f14 "/proc/$worker/stat")
    echo "worker $worker: $a $b" >/tmp/out
    [ -n "$worker" ] && [ "$a" = "$b" ]
    check "$who: frozen, it uses no time" $?
    dw "$who" thaw "$run"
    check "$who: thaw" "$status"
    sleep 0.7
    c=$(cut -d' ' -f14 "/proc/$worker/stat")
    echo "worker $worker: $b $c" >/tmp/out
    [ -n "$worker" ] && [ "$c" -gt "$b" ]
    check "$who: thawed, it goes on" $?
    dw "$who" freeze "$run"
    dw "$who" stop --now "$run"
    check "$who: stop, also of what is frozen" "$status"
    wait "$background"
    status=$?
    cp /tmp/frozen /tmp/out
    [ "$status" -eq 143 ]
    check "$who: it ends as stopped ($status)" $?
}

# clean WHERE: no group of ours is left
clean() {
    find /sys/fs/cgroup -name 'doorward-*' >/tmp/out
    [ ! -s /tmp/out ]
    check "$1: no control group is left" $?
}

walls root
[ "$status" -eq 125 ] && says 'id-mapped mounts' && says 'use .copy. for it'
check "root: tmpfs has no id-mapped mounts before Linux 6.3: an overlay of it is refused, with another way ($status)" $?
limits root
switch root
clean root
dw root doctor
says 'limit memory  *held  *cgroup-v2' && says 'limit processes  *held  *cgroup-v2' && says 'limit cpus  *held  *cgroup-v2'
check "root: the doctor finds the limits held by control groups v2" $?
sed 's/^/# root doctor: /' /tmp/out

# Without a delegated group
dw user run -- true
[ "$status" -eq 125 ] && says memory
check "user without a group: refused, naming the limit ($status)" $?
dw user doctor
says memory
check "user without a group: the doctor says what to type" $?
sed 's/^/# user doctor: /' /tmp/out

walls user --degrade memory
[ "$status" -eq 125 ] && says 'Linux 6.6' && says 'say copy'
check "user: an overlay is refused before Linux 6.6, with another way ($status)" $?

# A group that is the user's, but in which processes stand: v2 hands no controllers down from it, so nothing may run.
echo "+memory +pids +cpu" >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/user
chown -R user:user /sys/fs/cgroup/user
into /sys/fs/cgroup/user dw user run -- echo ran
says limits.memory && ! says '^ran'
check "user in a group that holds processes: refused, never without the limit" $?
clean user

echo "1..$count"
poweroff -f
