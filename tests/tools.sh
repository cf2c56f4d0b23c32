#!/bin/sh
# The judges can say no: rooms.py finds what it must refuse, tap-sum counts what failed, was skipped or never finished.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
count=0 bad=0

# expect NAME EXPRESSION: greps the last output, in $dir/out, for a fixed text.
expect() {
    count=$((count + 1))
    if grep -qF -- "$2" "$dir/out"; then
        echo "ok $count - $1"
    else
        sed 's/^/# /' "$dir/out"
        echo "not ok $count - $1"
        bad=1
    fi
}

# A house with two rooms; each case changes one thing.
house() {
    rm -rf "$dir/house"
    mkdir -p "$dir/house/src/low" "$dir/house/src/high"
    printf 'low | - | all | below\nhigh | low | all | above\n' >"$dir/house/src/ROOMS"
    printf '/* low.h: a part. runs in: all */\n' | tee "$dir/house/src/low/low.h" >"$dir/house/src/high/high.h"
    printf '/* low.c: a part. runs in: all */\n' >"$dir/house/src/low/low.c"
}
rooms() {
    /usr/bin/python3 "$top/tests/rooms.py" "$dir/house" >"$dir/out" 2>&1
    echo "status $?" >>"$dir/out"
}

house
rooms
expect "a tidy house is accepted" "status 0"
echo '#include "high/high.h"' >>"$dir/house/src/low/low.c"
rooms
expect "an include that no row allows is refused" "does not let low include high"
expect "and fails" "status 1"
house
echo '#include "other.h"' >>"$dir/house/src/low/low.c"
rooms
expect "an include without its room is refused" 'write "room/file.h"'
house
echo 'int x;' >"$dir/house/src/low/low.c"
rooms
expect "a source that does not say where it runs is refused" "no 'runs in:'"
house
mkdir "$dir/house/src/attic"
rooms
expect "a folder without a row is refused" "src/attic/ has none"
house
printf 'low | high | all | below\nhigh | low | all | above\n' >"$dir/house/src/ROOMS"
rooms
expect "a cycle is refused" "includes itself through others"

# sum STRICT TAP-TEXT
sum() {
    printf '%b' "$2" >"$dir/one.tap"
    STRICT=$1 "$top/tools/tap-sum" "$dir/one.tap" >"$dir/out" 2>&1
    echo "status $?" >>"$dir/out"
}

sum 0 'ok 1 - a\nok 2 - b\n1..2\n'
expect "passes are counted" "2 passed, 0 failed"
expect "and succeed" "status 0"
sum 0 'ok 1 - a\nnot ok 2 - b\n1..2\n'
expect "a failure is counted" "1 passed, 1 failed"
expect "and fails" "status 1"
sum 0 'ok 1 - a\n'
expect "a program that ends before its plan has failed" "1 passed, 1 failed"
sum 0 'ok 1 - a\n1..2\n'
expect "so has one that runs fewer tests than planned" "1 passed, 1 failed"
sum 0 'not ok 1 - a # TODO later\n1..1\n'
expect "a TODO excuses nothing" "0 passed, 1 failed"
sum 0 'ok 1 - a # SKIP no such thing\nok 2 - b\n1..2\n'
expect "a skipped test does not count here" "1 passed, 0 failed"
sum 1 'ok 1 - a # SKIP no such thing\nok 2 - b\n1..2\n'
expect "and is a failure with STRICT=1" "1 passed, 1 failed"
sum 0 ''
expect "nothing at all is a failure" "status 1"
echo "1..$count"
exit $bad
