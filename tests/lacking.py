#!/usr/bin/python3
"""A host that lacks something: each part of doorward missing or broken in turn, each call of the kernel that a wall stands
on missing, forbidden, or saying that it did what it did not do (field cases A40, B01).

Either the start is refused with 125, the layer and a remedy, and the command did not run; or there is another way, and the
command runs behind whole walls, which it then tries itself. Each attempt of it is seen to succeed outside first.
usage: lacking.py TEST-DENY"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from tap import check, finish

DOORWARD = os.environ["DOORWARD"]
DENY = os.path.abspath(sys.argv[1])
ROOT = os.geteuid() == 0
SANITIZED = os.environ.get("DOORWARD_SANITIZED")  # its run-time needs some of these calls, and cannot speak under a filter
top = tempfile.mkdtemp(prefix="dw-lacking-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": top + "/home", "XDG_STATE_HOME": top + "/state",
       "XDG_RUNTIME_DIR": top + "/runtime", "XDG_CONFIG_HOME": top + "/config"}
for name in ("home", "state", "runtime", "open", "input"):
    os.mkdir(f"{top}/{name}", 0o700)
os.chmod(top, 0o755)
os.chmod(top + "/open", 0o777)
for name in ("open/secret", "input/file"):
    with open(f"{top}/{name}", "w") as f:
        f.write("CANARY")
    os.chmod(f"{top}/{name}", 0o666)
before = sorted(os.listdir(top + "/open"))
heard = []
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(64)
abstract = socket.socket(socket.AF_UNIX)
abstract.bind(f"\0dw-lacking-{os.getpid()}")
abstract.listen(64)


def listen(s):
    while True:
        try:
            heard.append(s.accept()[0])
        except OSError:
            return


for s in (listener, abstract):
    threading.Thread(target=listen, args=[s], daemon=True).start()

# What the command tries; prints one letter for each wall that it found open, and "tried" at the end.
TRIES = f"""
import os, socket
def attempt(letter, what):
    try:
        if what() is not False: print(letter, end="")
    except OSError: pass
def connect(family, address):
    s = socket.socket(family); s.settimeout(3); s.connect(address)
def write(path): open(path, "w").write("changed")
def status(key): return [l.split()[1:] for l in open("/proc/self/status") if l.startswith(key + ":")][0]
attempt("r", lambda: open("{top}/open/secret").read())
attempt("R", lambda: open("/..{top}/open/secret").read())
attempt("w", lambda: write("{top}/open/new"))
attempt("i", lambda: write("/in/file"))
attempt("u", lambda: write("/usr/new"))
attempt("t", lambda: connect(socket.AF_INET, ("127.0.0.1", {listener.getsockname()[1]})))
attempt("a", lambda: connect(socket.AF_UNIX, "\\0dw-lacking-{os.getpid()}"))
attempt("p", lambda: os.kill({os.getpid()}, 0))
attempt("c", lambda: any(int(status(k)[0], 16) for k in ("CapEff", "CapPrm", "CapBnd", "CapInh")))
attempt("n", lambda: status("NoNewPrivs") != ["1"])
attempt("g", lambda: bool({{int(g) for g in status("Groups")}} - {{1000, 65534}}))
attempt("d", lambda: len(os.listdir("/proc/self/fd")) > 4)
print(" tried")
"""
control = subprocess.run([sys.executable, "-c", TRIES], capture_output=True, env=env)
check("control: outside, what the command tries succeeds", set("rRwtap") <= set(control.stdout.decode().split()[0]) and
      b"tried" in control.stdout, control)
os.unlink(top + "/open/new")
patience = time.monotonic() + 10
while len(heard) < 2 and time.monotonic() < patience:  # the threads have yet to take what was connected
    time.sleep(0.01)
reached = len(heard)


def dw(*words, program=DOORWARD, deny=(), **more):
    more = {"env": env, "stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 60, "cwd": "/", **more}
    return subprocess.run([*([DENY, *deny, "--"] if deny else []), program, *words], **more)


DEGRADE = ["--degrade", "memory"] if b"--degrade memory" in dw("run", "--", "true").stderr else []
COMMAND = ["--read", top + "/input:/in", "--", "/usr/bin/python3", "-c", TRIES]


def whole(done):
    """The command ran, and every wall stood."""
    return done.returncode == 0 and done.stdout == b" tried\n"


def refused(done, *words):
    """Nothing ran; 125; the message has the words and something to do."""
    said = done.stderr.decode()
    return (done.returncode == 125 and done.stdout == b"" and "tried" not in said and all(w in said for w in words) and
            any(remedy in said for remedy in ("; type: ", "; do: ", "needed", "allow it", "degrade", "sysctl", "install", "nothing runs", "told to",
                                              "forbids it", "lacks what", "readable and executable")))


def untouched():
    return (sorted(os.listdir(top + "/open")) == before and len(heard) == reached and
            open(top + "/open/secret").read() == open(top + "/input/file").read() == "CANARY")


check("control: on this host as it is, the command runs behind whole walls", whole(dw("run", *DEGRADE, *COMMAND)),
      dw("run", *DEGRADE, *COMMAND))


# -- our own parts: missing, not executable, cut short, another program, of another version --
def parts():
    place = tempfile.mkdtemp(dir=top)
    own = os.path.dirname(DOORWARD)
    libexec = own if os.path.exists(own + "/doorward-launch") else own + "/../libexec/doorward"
    for name, folder in (("doorward", own), ("doorward-main", libexec), ("doorward-launch", libexec), ("doorward-init", libexec)):
        if os.path.exists(os.path.join(folder, name)):  # with sanitizers doorward has no front
            shutil.copy(os.path.join(folder, name), place)
    os.chmod(place, 0o755)
    here = lambda: dw("run", *DEGRADE, *COMMAND, program=place + "/doorward")
    check("control: a copy of the parts works", whole(here()), here())

    def cut(path, size):
        with open(path, "r+b") as f:
            f.truncate(size)

    def other_version(path):
        """A launcher that speaks a later version: the header's second field, as src/wire/wire.h has it."""
        with open(path, "w") as f:
            f.write("#!/usr/bin/python3\nimport socket, struct\ns = socket.socket(fileno=3)\ns.recv(65536)\n"
                    "s.send(struct.pack('=IHHII', 0x44574152, 2, 1, 0, 0))\ns.recv(65536)\n")
        os.chmod(path, 0o755)

    for name in ("doorward-launch", "doorward-init"):
        path = f"{place}/{name}"
        size = os.path.getsize(path)
        shutil.copy(path, place + "/whole")
        ways = [("missing", os.unlink), ("not executable", lambda p: os.chmod(p, 0o644)),
                ("empty", lambda p: cut(p, 0)), ("cut after its header", lambda p: cut(p, 64)),
                ("cut in the middle", lambda p: cut(p, size // 8)), ("a folder", lambda p: (os.unlink(p), os.mkdir(p))),
                ("a dangling link", lambda p: (os.unlink(p), os.symlink("nowhere", p))),
                ("another program", lambda p: shutil.copy("/bin/true", p))]
        if name == "doorward-launch":
            ways.append(("of another version", other_version))
        for what, spoil in ways:
            spoil(path)
            done = here()
            # Where make install has put one in its own place, that one is used: then the walls must be whole.
            installed = name == "doorward-launch" and what in ("missing", "a dangling link") and whole(done)
            check(f"{name} {what}: nothing runs, 125, and what is wrong is named", installed or (
                done.returncode == 125 and done.stdout == b"" and len(done.stderr) > 30 and
                (b"launch" in done.stderr or b"init" in done.stderr or SANITIZED)), done)
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.path.lexists(path) and os.unlink(path)
            shutil.copy(place + "/whole", path)
    check("control: put back, it works again", whole(here()), here())


# -- calls of the kernel: missing or forbidden --
MISSING = {  # what the refusal must name; None: there is another way
    "clone3": "wall userns", "setns": "wall net", "mount_setattr": "mounted|wall mounts", "fsopen": "tmpfs|wall mounts",
    "fsconfig": "tmpfs|wall mounts", "fsmount": "tmpfs|wall mounts", "open_tree": "mounted|wall mounts", "move_mount": "wall mounts",
    "pivot_root": "wall mounts", "umount2": "wall mounts", "landlock_create_ruleset": "wall landlock",
    "landlock_add_rule": "wall landlock", "landlock_restrict_self": "wall landlock", "seccomp": "wall seccomp",
    "capset": "wall caps", "setresuid": "wall userns", "setresgid": "wall userns", "execveat": "doorward-init",
    "clone": "doorward-launch", "unshare:0:0x40000000=0x40000000": "wall net", "unshare:0:0x02000000=0x02000000": "wall cgroup",
    "prctl:0:0xffffffff=38": "", "prlimit64:1:0xff=4": "core dumps", "sethostname": "wall ipc", "pidfd_send_signal": None,
}
if ROOT:
    MISSING["setgroups"] = "wall userns"


def rule(call, code):
    name, _, more = call.partition(":")
    return f"{name}:{code}" + (":" + more if more else "")


def missing():
    for call, named in MISSING.items():
        if SANITIZED and call.partition(":")[0] in ("execveat", "clone", "prlimit64"):
            continue
        for code in ("ENOSYS", "EPERM"):
            done = dw("run", *DEGRADE, *COMMAND, deny=[rule(call, code)])
            if named is None:
                check(f"{call} {code}: there is another way, behind whole walls", whole(done), done)
            else:
                check(f"{call} {code}: nothing runs, the layer and a remedy are named", refused(done) and
                      any(n in done.stderr.decode() for n in named.split("|")), done)
    for call in ("openat2", "close_range"):
        done = dw("run", *DEGRADE, *COMMAND, deny=[call + ":ENOSYS"])
        check(f"{call} ENOSYS: there is another way, behind whole walls", whole(done), done)
    done = dw("run", *DEGRADE, *COMMAND, deny=["openat2:ENOSYS", "close_range:ENOSYS", "pidfd_send_signal:ENOSYS"])
    check("all three missing at once", whole(done), done)
    done = dw("run", *DEGRADE, "--", "/bin/echo", "ran", deny=["close_range:ENOSYS", "getdents64:ENOSYS"])
    check("no close_range and no list of descriptors: the sweep cannot be complete, nothing runs", done.returncode == 125 and
          not done.stdout, done)
    began = time.monotonic()
    done = dw("run", *DEGRADE, "--timeout", "1s", "--", "sleep", "30", deny=["pidfd_send_signal:ENOSYS"])
    check("without signals by handle the deadline holds all the same", done.returncode == 124 and time.monotonic() - began < 10,
          done, time.monotonic() - began)
    for call, code in (("clone3", "ENOSPC"), ("clone3", "EAGAIN")):
        done = dw("run", *DEGRADE, *COMMAND, deny=[f"{call}:{code}"])
        check(f"{call} {code}: the limit behind it is named", done.returncode == 125 and not done.stdout and
              (b"max_user_namespaces" in done.stderr or b"ulimit -u" in done.stderr), done)


def degraded():
    """What a policy may do without it runs without, says so, and keeps all the rest."""
    for wall, call in (("landlock", "landlock_create_ruleset"), ("seccomp", "seccomp")):
        done = dw("run", *DEGRADE, *COMMAND, deny=[call + ":ENOSYS"])
        check(f"{wall} missing: the remedy names the wall that would go", f"--degrade {wall}".encode() in done.stderr, done)
        done = dw("run", *DEGRADE, "--degrade", wall, *COMMAND, deny=[call + ":ENOSYS"])
        check(f"with --degrade {wall} it runs, the other walls whole", whole(done), done)
        shown = json.loads(dw("show", "last", "--json").stdout)
        check("and the record says what is not there", "degraded" in json.dumps(shown), shown)
        done = dw("run", *DEGRADE, "--degrade", wall, *COMMAND)
        check("where the host has it, it stands all the same", whole(done) and "degraded:" not in json.dumps(
            json.loads(dw("show", "last", "--json").stdout)), done)


# -- calls that say they did it --
LIES = ["seccomp", "setns", "umount2", "pivot_root", "unshare:0:0x40000000=0x40000000", "setresuid", "setresgid",
        "capset", "move_mount", "prlimit64:1:0xff=4"]
if ROOT:
    LIES.append("prctl:0:0xffffffff=38")


def lies():
    for call in LIES:
        done = dw("run", *DEGRADE, *COMMAND, deny=[rule(call, "OK")])
        # An exec as an ordinary user takes capabilities away by itself: then it depends on when they are looked at. And an
        # ordinary user's one id is the worker's already.
        nothing_to_do = call == "capset" or (not ROOT and call in ("setresuid", "setresgid"))
        good = (nothing_to_do and whole(done)) or done.returncode == 125 and not done.stdout and len(done.stderr) > 30
        check(f"{call} says that it was done, and was not: that is found before anything runs", good, done)
    done = dw("run", *DEGRADE, *COMMAND, deny=["prlimit64:OK:1:0xff=4"])
    check("the limit that is not in force is named", b"core dumps: the kernel does not hold" in done.stderr, done)
    if not ROOT:
        done = dw("run", *DEGRADE, *COMMAND, deny=["prlimit64:OK:1:0xff=6"])
        check("and that of processes, where an rlimit holds it", b"limits.processes" in done.stderr or whole(done), done)
    if ROOT:
        done = dw("run", *DEGRADE, *COMMAND, deny=["setgroups:OK"], extra_groups=[4, 24])
        check("groups of the caller's that were not dropped: nothing runs", refused(done, "wall userns"), done)
        done = dw("run", *DEGRADE, *COMMAND, extra_groups=[4, 24])
        check("control: dropped, they are not there", whole(done), done)
    # A filter around doorward is no wall of doorward's, though the kernel counts it too.
    done = dw("run", *DEGRADE, *COMMAND, deny=["seccomp:OK", "add_key:EPERM"])
    check("somebody else's filter does not pass for ours", b"wall seccomp" in done.stderr and done.returncode == 125, done)


try:
    for part in (parts, missing, degraded, lies):
        began = time.monotonic()
        part()
        check(f"{part.__name__}: nothing outside was touched or reached", untouched(), os.listdir(top + "/open"), len(heard))
        print(f"# {part.__name__}: {time.monotonic() - began:.1f} s")
    groups = [f for f, folders, _ in os.walk("/sys/fs/cgroup") if any(r in f for r in os.listdir(env["XDG_STATE_HOME"] + "/doorward/runs"))]
    check("no control group is left", not groups, groups)
    bad = [r for r in json.loads(dw("ps", "-a", "--json").stdout)["runs"] if r["state"] in ("running", "unfinished", "damaged")]
    check("each run has ended on record", not bad, bad[:3])
finally:
    listener.close()
    shutil.rmtree(top, ignore_errors=True)
finish()
