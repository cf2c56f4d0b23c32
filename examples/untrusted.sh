#!/bin/sh
# What a hostile script tries first. Every line is harmless where it succeeds; see untrusted.yaml.
try() {
    what=$1
    shift
    if "$@" >/dev/null 2>&1; then echo "reached:     $what"; else echo "not reached: $what"; fi
}
echo "I am $(id -un) ($(id -u)) on $(uname -n), and see $(find /proc -maxdepth 1 -name '[0-9]*' | wc -l) processes"
# shellcheck disable=SC2016  # expanded by the inner shell
{
    try "other people's homes" sh -c 'ls -d /home/*/.ssh /root/.ssh'
    try "the host's password hashes" cat /etc/shadow
    try "another network than my own loopback" sh -c 'grep -v "lo:" /proc/net/dev | grep -q :'
    try "a folder of the system, writing" touch /usr/bin/mine
    try "a new user namespace" unshare --user true
    try "a mount" mount -t tmpfs none /tmp
    try "more disk than I may use" dd if=/dev/zero of=/tmp/big bs=1M count=64
    try "a hundred processes" sh -c 'for i in $(seq 100); do sleep 3 & done'
}
sleep 300 & # stays behind; the step ends all the same
echo "done"
