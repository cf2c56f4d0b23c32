#!/bin/sh
# Shows the main job: a real build of a real source tree behind the walls, its plan, its result, its record.
# usage: examples/demo.sh BUILD   (a folder that holds a built doorward; bootstrap.sh demo calls this)
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
doorward=$(cd "$1" && pwd)/doorward
[ -x "$doorward" ] || { echo "demo: $doorward is not built; run: make" >&2; exit 1; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 1' INT TERM HUP

title() {
    printf '\n\033[1m%s\033[0m\n' "$*"
}

# Shows a command and runs it.
show() {
    printf '$ %s\n' "$(printf '%s ' "$@" | sed "s|$doorward|doorward|g; s|$top/||g; s| \$||")"
    "$@"
}

# The first lines of long output, then one in ten, then the last.
trim() {
    awk 'NR <= 12 || NR % 10 == 0 { print "  | " $0; shown = NR; fflush() } { last = $0 } END { if (NR > shown) print "  | " last }'
}

# One digest over every path, type, mode and byte of the tree that the build sees.
tree_digest() {
    (cd "$top" && find . -path ./.git -prune -o -path './build*' -prune -o -printf '%P %y %m %T@ %l\n' | sort
        find . -path ./.git -prune -o -path './build*' -prune -o -type f -print0 | sort -z | xargs -0 sha256sum) | sha256sum | cut -c1-64
}

cd "$top"
before=$(tree_digest)

title "1. The plan, in words: what the task may reach on this host"
show "$doorward" plan examples/build.yaml

title "2. The run: this source tree, built by meson, ninja and gcc behind the walls"
status=0
{ show "$doorward" run --status-fd 9 examples/build.yaml 9>"$out/status" 2>&1 || echo $? >"$out/failed"; } | trim
[ ! -e "$out/failed" ] || status=$(cat "$out/failed")
echo "exit status $status; the final record begins: $(cut -c1-200 "$out/status")"
[ "$status" -eq 0 ] || { echo "demo: the build did not complete: see 'doorward show last'" >&2; exit 1; }

title "3. What came out"
show "$doorward" show last
run=$(sed 's/.*"run":"\([0-9A-Z]*\)".*/\1/' "$out/status")
show "$doorward" artifacts "$run"
blob=$("$doorward" artifacts "$run" | sed -n 's/^ *\(\/.*blobs.*\)/\1/p')
cp "$blob" "$out/doorward"
chmod +x "$out/doorward"
echo "sha256 of the stored file: $(sha256sum <"$out/doorward" | cut -c1-64)"
echo "the exported program, itself run behind the walls:"
# An ordinary user to whom no control group is delegated has to say what may be missing.
degrade=
"$doorward" run -- true 2>/dev/null || degrade='--degrade memory --degrade cpus'
# shellcheck disable=SC2086  # a list
show "$doorward" run $degrade --read "$out/doorward:/in/doorward" -- /in/doorward --version

title "4. The record can be checked"
show "$doorward" verify "$run"

title "5. The source tree is as it was"
after=$(tree_digest)
echo "before $before"
echo "after  $after"
[ "$before" = "$after" ] || { echo "demo: the tree has changed" >&2; exit 1; }

title "6. A script from a stranger"
show "$doorward" run examples/untrusted.yaml
show "$doorward" ps | head -n 5

title "Next: 'doorward lab' tries every wall on this host, 'doorward help' lists the verbs, README.md says the rest"
echo "(doorward is $doorward; 'make install' puts it in place)"
