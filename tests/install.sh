#!/bin/sh
# What `make install` lays down is complete and finds itself: run from DESTDIR, nowhere near the build folder.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
build=$(dirname "$DOORWARD")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
count=0 bad=0

check() { # check NAME COMMAND...
    name=$1
    shift
    count=$((count + 1))
    if "$@" >"$dir/log" 2>&1; then
        echo "ok $count - $name"
    else
        sed 's/^/# /' "$dir/log"
        echo "not ok $count - $name"
        bad=1
    fi
}

check "meson install with DESTDIR" env DESTDIR="$dir/root" meson install -C "$build" --no-rebuild --quiet
program=$(find "$dir/root" -type f -path '*/bin/doorward')
libexec=$(find "$dir/root" -type d -path '*/libexec/doorward')
check "one program in bin" test -n "$program"
for name in doorward-launch doorward-init doorward-probe; do
    check "$name lies in libexec" test -x "$libexec/$name"
done
for page in "$top"/man/*; do
    section=${page##*.}
    check "$(basename "$page") is installed" cmp "$page" "$(find "$dir/root" -path "*/man$section/$(basename "$page")")"
done
hardened() { # full RELRO, position independent, no executable stack
    readelf -hW "$1" | grep -q 'Type:.*DYN' && readelf -lW "$1" | grep -q GNU_RELRO &&
        ! readelf -lW "$1" | grep -qE 'GNU_STACK.*E ' && readelf -dW "$1" | grep -q BIND_NOW
}
for file in "$program" "$libexec"/*; do
    check "$(basename "$file") is hardened" hardened "$file"
done
for name in doorward-init doorward-probe; do
    # shellcheck disable=SC2016  # expanded by the inner shell
    check "$name needs no loader" sh -c '! readelf -lW "$1" | grep -q INTERP' sh "$libexec/$name"
done
mkdir "$dir/home"
installed() {
    env HOME="$dir/home" XDG_STATE_HOME="$dir/home/state" XDG_RUNTIME_DIR="$dir/home" "$program" "$@"
}
check "it says its version" installed --version
# Nothing may hold a group's memory for an ordinary user here.
degrade=
[ "$(id -u)" -eq 0 ] || degrade='--degrade memory --degrade cpus'
# shellcheck disable=SC2016,SC2086  # expanded by the inner shell; a list
check "it runs a command behind the walls" installed run $degrade -- sh -c 'test "$(id -u)" = 1000'
check "its record verifies" installed verify last
echo "1..$count"
exit $bad
