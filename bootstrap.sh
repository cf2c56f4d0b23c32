#!/bin/sh
# From a fresh Debian 12 to a built, shown or tested doorward.
#   sh bootstrap.sh demo       installs what is missing, builds, runs a real build behind the walls and shows the result
#   sh bootstrap.sh check      the same installation, then every test; the last line is "N passed, N failed"
#   sh bootstrap.sh packages   only the packages
# The packages stand in docs/dependencies.md. STRICT=1 (set where CI is) counts a skipped test as a failure.
set -eu
cd "$(dirname "$0")"

say() {
    printf '== %s\n' "$*"
}

# die MESSAGE NEXT-STEP
die() {
    printf 'bootstrap: %s\nbootstrap: next step: %s\n' "$1" "$2" >&2
    exit 1
}

# The packages of docs/dependencies.md: to build and run, or, with "check", all of them.
wanted_packages() {
    sections='/^## To build/,/^## To test/'
    [ "$1" != check ] || sections='/^## To build/,$'
    sed -n "$sections"'s/^| `\([a-z0-9][a-z0-9.+-]*\)` |.*/\1/p' docs/dependencies.md
}

missing_packages() {
    for package in $(wanted_packages "$1"); do
        case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
        "install ok installed") ;;
        *) printf '%s ' "$package" ;;
        esac
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        die "root is needed for: $*" "run that as root, or install sudo, then start again"
    fi
}

packages() {
    command -v dpkg-query >/dev/null 2>&1 ||
        die "this is not a Debian system" "install the packages of docs/dependencies.md by hand, then: make check"
    missing=$(missing_packages "$1")
    if [ -z "$missing" ]; then
        say "every Debian package that this needs is here"
        return
    fi
    say "installing: $missing"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update </dev/null ||
        die "apt-get update failed" "see that the package sources in /etc/apt can be reached, then start again"
    # shellcheck disable=SC2086  # a list
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing </dev/null ||
        die "apt-get could not install: $missing" "read the lines above; on other releases some names differ, see docs/dependencies.md"
}

build() {
    say "building (make)"
    make || die "the build failed" "read the first error above; 'make clean' and again rules out a stale build folder"
}

case ${1:-} in
demo)
    packages demo
    build
    exec sh examples/demo.sh build
    ;;
check)
    packages check
    exec sh tools/check
    ;;
packages)
    packages check
    ;;
*)
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
