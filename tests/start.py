#!/usr/bin/python3
"""The start of a step, and what it leaves open: the reason when a half of it fails, a controller that dies while it goes
on, what init holds, the attributes that an input's own folder shows, the worker's streams by name."""
import glob
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time

from tap import check, finish

DOORWARD = os.environ["DOORWARD"]
ROOT = os.geteuid() == 0
top = tempfile.mkdtemp(prefix="dw-start-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": top, "XDG_STATE_HOME": top + "/state",
       "XDG_RUNTIME_DIR": top + "/runtime", "XDG_CONFIG_HOME": top + "/config"}
for name in ("state", "runtime", "work"):
    os.mkdir(f"{top}/{name}", 0o700)
WORK = top + "/work"


def dw(*words, **more):
    more = {"env": env, "stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 60, "cwd": WORK, **more}
    return subprocess.run([DOORWARD, *words], **more)


DEGRADE = ["--degrade", "memory"] if b"--degrade memory" in dw("run", "--", "true").stderr else []


def run(*words, flags=(), **more):
    return dw("run", *DEGRADE, *flags, "--", *words, **more)


def start(*words, flags=()):
    return subprocess.Popen([DOORWARD, "run", *DEGRADE, *flags, "--", *words], env=env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=WORK)


def put(path, content=""):
    path = os.path.join(WORK, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)
    return path


def dying(pid, flags):
    """True for a process that is on its way out: exiting (PF_EXITING, proc(5)) or with SIGKILL waiting for it."""
    try:
        with open(f"/proc/{pid}/status") as f:
            pending = [int(line.split()[1], 16) for line in f if line.startswith(("SigPnd", "ShdPnd"))]
    except OSError:
        return True
    return bool(flags & 4 or any(bits >> (signal.SIGKILL - 1) & 1 for bits in pending))


def children():
    """The children of each process, without the dead and the dying."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                rest = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        pid = int(path.split("/")[2])
        if rest[0] != "Z" and not dying(pid, int(rest[6])):
            found.setdefault(int(rest[1]), []).append(pid)
    return found


def below(pid):
    tree, found = children(), []
    waits = [pid]
    while waits:
        for child in tree.get(waits.pop(), []):
            found.append(child)
            waits.append(child)
    return found


def alive(pids):
    now = {p for row in children().values() for p in row}
    return [p for p in pids if p in now]


def orphans():
    """Launchers, and processes that they have not executed anything in, whose parent is none of ours."""
    exe = {}
    for path in glob.glob("/proc/[0-9]*/exe"):
        try:
            exe[int(path.split("/")[2])] = os.path.basename(os.readlink(path))
        except OSError:
            pass
    tree = children()
    return {child for parent, row in tree.items() if not exe.get(parent, "").startswith("doorward") for child in row
            if exe.get(child) == "doorward-launch"}


def wait_until(holds, seconds=1.0):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def reasons():
    # Both in a user namespace of one id: an ordinary user's that allows no more of them, and root's that lacks our ids.
    inside = "exec \"$@\"" if ROOT else "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\""
    want = b"lacks the ids" if ROOT else b"max_user_namespaces"
    told = [subprocess.run(["unshare", "-U", "-r" if ROOT else "-c", "--keep-caps", "sh", "-c", inside, "sh", DOORWARD, "run",
                            *DEGRADE, "--", "true"], env=env, cwd=WORK, stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=60) for _ in range(10)]
    check("a host where no sandbox can be had is told what to change, each time",
          all(t.returncode == 125 and b"wall userns" in t.stderr and want in t.stderr for t in told), {t.stderr for t in told})
    put("linked/a")
    os.symlink("/etc", WORK + "/linked/link")
    flags = ["--overlay", "linked:/o", "--read", "linked/a:/o/link/x"]
    told = {run("true", flags=flags).stderr for _ in range(20)}
    check("a root that cannot be built says why, each time", len(told) == 1 and b"link lies on the way" in told.pop(), told)


def killed():
    for i in range(6000):
        put(f"many/{i % 50}/{i}", "x" * 100)
    folders = [w for i in range(300) for w in ("--read", f"many/{i % 50}:/in/{i}")]
    for what, flags in (("copies", ["--copy", "many:/c"]), ("mounts", folders)):
        left, seen, before = [], set(), orphans()
        for i in range(40):
            p = start("sleep", "60", flags=flags)
            time.sleep(0.002 + 0.004 * i)
            launchers, mine = children().get(p.pid, []), below(p.pid)
            seen.add(len(mine))
            p.kill()
            p.wait()
            # The kernel has told them before it told us; dying may take a moment on a loaded machine.
            survived = [] if wait_until(lambda: not alive(launchers), 0.5) else alive(launchers)
            p.stdout.close()
            p.stderr.close()
            if survived or not wait_until(lambda: not alive(mine) and not orphans() - before, 10):
                left.append((i, survived, alive(mine), orphans() - before))
        check(f"a controller killed while its launcher {what} leaves nothing", not left and max(seen) > 0, left, seen)
    dw("ps")


def open_below(pid):
    """Name, folder and descriptors of every process below one; or why they cannot be seen."""
    found = {}
    for child in below(pid):
        try:
            with open(f"/proc/{child}/cmdline", "rb") as f:
                name = f.read().split(b"\0")[0].decode()
        except OSError:
            continue
        try:
            fds = [os.readlink(f"/proc/{child}/fd/{n}") for n in sorted(os.listdir(f"/proc/{child}/fd"), key=int)]
            found[name] = (os.readlink(f"/proc/{child}/cwd"), [f.split(":")[0] for f in fds])
        except OSError as e:
            found[name] = e
    return found


def opened():
    """What init holds: it listens to the worker, so nothing of the host may hang on it."""
    init, reaper = ("/", ["/dev/null"] * 3 + ["socket", "socket", "anon_inode"]), ("/", ["/dev/null", "pipe", "pipe", "socket",
                                                                                      "anon_inode"])
    p = start("sh", "-c", "echo up; exec sleep 60")
    p.stdout.read(3)
    found = {}

    def settled():  # init may still be on its way through exec when the worker runs
        found.clear()
        found.update(open_below(p.pid))
        if ROOT:
            return found.get("init") == init
        return isinstance(found.get("init"), PermissionError) and isinstance(found.get("reaper"), PermissionError)

    quiet = wait_until(settled, 5.0)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=20)
    if ROOT:
        check("init stands in the sandbox's root, with two sockets and a signal descriptor", quiet, found)
        check("so does the reaper, with one and the worker's streams", found.get("reaper") == reaper, found)
    else:
        check("init and reaper cannot be looked into", quiet, found)


def attributes():
    put("in/sub/f")
    os.chmod(WORK + "/in", 0o750)
    os.utime(WORK + "/in", (1e9, 1e9))
    flags = [w for kind in ("read", "overlay", "copy") for w in (f"--{kind}", f"in:/{kind}")]
    done = run("stat", "-c", "%a %U %Y", "/read", "/overlay", "/copy", flags=flags)
    check("the top of an input has its own mode, owner and time", done.stdout.decode().splitlines() ==
          ["750 agent 1000000000"] * 3, done)
    if ROOT:
        for uid in (0, 33, 1000, 70000):
            os.chown(WORK + "/in", uid, uid)
            os.chmod(WORK + "/in", 0o700)
            done = run("sh", "-c", "stat -c %a:%U /read /overlay /copy && ls /read /overlay /copy && touch /overlay/n /copy/n",
                       flags=flags)
            check(f"and is the worker's to use, owned by {uid}", done.returncode == 0 and
                  done.stdout.decode().splitlines()[:3] == ["700:agent"] * 3, done)


def unlistable():
    """A folder that cannot be listed may hold what a pattern hides: it is left out as a whole."""
    folder = "/var/cache/ldconfig"  # root's alone on Debian
    for pattern in ({"exclude": ["nothing-such"]}, {"only": ["ldconfig/**", "no/*"]}):
        step = {"run": ["sh", "-c", "test -e /x/ldconfig && echo there; true"],
                "inputs": {"/x": {"read": os.path.dirname(folder), **pattern}}}
        if DEGRADE:
            step["degrade"] = ["memory"]
        put("task.yaml", json.dumps({"version": 1, "task": "t", "steps": {"one": step}}))
        done = dw("run", "task.yaml")
        check(f"{pattern}: shown to who may list it, not to others", done.returncode == 0 and
              done.stdout == (b"there\n" if ROOT else b""), done)


def exports():
    flags, script = [], ""
    for i in range(40):
        os.makedirs(f"{WORK}/many-outs/{i}")
        flags += ["--overlay", f"many-outs/{i}:/o/{i}", "--export", f"e{i}=/o/{i}/f"]
        script += f"echo {i} > /o/{i}/f; "
    done = run("sh", "-c", script, flags=flags)
    check("exports from forty overlays", done.returncode == 0, done)


def not_the_workers():
    """A worker that may move a file need not be able to read it; doorward does not read it for the worker."""
    if not ROOT:
        return
    put("owned/theirs", "secret")
    os.chown(WORK + "/owned/theirs", 33, 33)
    os.chmod(WORK + "/owned/theirs", 0o600)
    script = "cat /o/theirs; mv /o/theirs /o/x && echo mine > /o/y && chmod 600 /o/y"
    done = run("sh", "-c", script, flags=["--overlay", "owned:/o", "--export", "x=/o/x", "--export", "y=/o/y"])
    newest = json.loads(dw("ps", "-a", "--json").stdout)["runs"][0]["run"]
    log = [json.loads(line) for line in dw("log", "--json", newest).stdout.splitlines()]
    what = {r["body"]["name"]: r["type"] for r in log if r["type"].startswith("export.")}
    check("what the worker cannot read is not collected for it", done.returncode == 0 and
          what == {"x": "export.refused", "y": "export.collected"}, done, what)


def streams():
    done = run("sh", "-c", "echo a >/dev/stdout; echo b >/dev/stderr; echo c >/proc/self/fd/1; echo d | tee /dev/stderr")
    check("the worker's streams can be opened by name", done.returncode == 0 and done.stdout == b"a\nc\nd\n" and
          done.stderr.startswith(b"b\nd\n"), done)
    done = run("sh", "-c", "cat /dev/stdin", flags=["-i"], stdin=None, input=b"in")
    check("input too", done.stdout == b"in", done)


def low_limit():
    """A hard limit of open files below the step's holds instead of it."""
    done = subprocess.run(["sh", "-c", "ulimit -n 300; exec \"$@\"", "sh", DOORWARD, "run", *DEGRADE, "--", "sh", "-c",
                           "ulimit -Hn"], env=env, cwd=WORK, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    check("a lower limit of open files is kept", done.returncode == 0 and done.stdout == b"300\n", done)
    newest = json.loads(dw("ps", "-a", "--json").stdout)["runs"][0]["run"]
    limit = json.loads(dw("show", "--json", newest).stdout)["steps"][0]["limits"]["open-files"]
    check("and is what the record says", limit["in_force"] == 300 and limit["asked"] > 300, limit)
    done = subprocess.run(["sh", "-c", "ulimit -Hc 0; exec \"$@\"", "sh", DOORWARD, "run", *DEGRADE, "--", "sh", "-c", "ulimit -Hc"],
                          env=env, cwd=WORK, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    check("a caller without core dumps can start, and the worker has none", done.returncode == 0 and done.stdout == b"0\n", done)


def version_2():
    """A host with control groups v2 alone, as this one looks without its v1 mounts: the step is cloned into its group."""
    if not ROOT:
        return
    script = "umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && exec \"$@\""
    for stop, want, words in (("completed", 0, ["sh", "-c", "(setsid sleep 60 &); true"]),
                              ("limit:wall", 124, ["sh", "-c", "(setsid sleep 60 &); trap '' TERM; while :; do :; done"])):
        done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", DOORWARD, "run",
                               "--degrade", "memory", "--timeout", "1s", "--", *words], env=env, cwd=WORK,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        newest = json.loads(dw("ps", "-a", "--json").stdout)["runs"][0]["run"]
        log = [json.loads(line) for line in dw("log", "--json", newest).stdout.splitlines()]
        groups = [g for r in log if r["type"] == "step.plan" for g in r["body"]["groups"]]
        walls = [r["body"]["enforced"]["walls"]["cgroup"] for r in log if r["type"] == "step.enforced"]
        check(f"control groups v2 alone: {stop}, in the step's group", done.returncode == want and walls == ["held"] and
              groups == [f"/sys/fs/cgroup/doorward-{newest}-0"], done, groups, walls)
        check("which is gone afterwards", not [f for f, _, _ in os.walk("/sys/fs/cgroup") if newest in f])


def links():
    """A link of the host's may be long, as NixOS has them."""
    if not ROOT: # the mount would need rights
        return
    long = "/" + "x" * 200
    script = f"cp -a /etc {top}/etc && ln -sfn {long} {top}/etc/localtime && mount --bind {top}/etc /etc && exec \"$@\""
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", DOORWARD, "run", "--", "readlink", "/etc/localtime"],
                          env=env, cwd=WORK, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    check("a long link of the host's is a link inside", done.stdout.decode().strip() == long, done)


try:
    for part in (low_limit, version_2, links, reasons, opened, attributes, unlistable, exports, not_the_workers, streams, killed):
        part()
finally:
    shutil.rmtree(top, ignore_errors=True)
finish()
