#!/usr/bin/python3
"""doorward run as a whole: stops and exit statuses, what a killed controller leaves, descriptors, streams, exports of
hostile shapes, hosts without descriptors or space. Runs as root and as an ordinary user."""
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import time

from tap import check, finish

DOORWARD = os.environ["DOORWARD"]
ROOT = os.geteuid() == 0


top = tempfile.mkdtemp(prefix="dw-run-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": top + "/home", "LANG": "C.UTF-8", "XDG_STATE_HOME": top + "/state",
       "XDG_RUNTIME_DIR": top + "/runtime", "XDG_CONFIG_HOME": top + "/config"}
for name in ("home", "state", "runtime", "work"):
    os.mkdir(f"{top}/{name}", 0o700)
STATE = top + "/state/doorward"
MARK = f"77{os.getpid()}.5"  # an argument of sleep by which our own workers are known on the host


def dw(*words, **more):
    more = {"env": env, "stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 60, "cwd": top + "/work", **more}
    return subprocess.run([DOORWARD, *words], **more)


# An ordinary user without a delegated control group has no limit of memory: that has to be said, and is said here.
probe = dw("run", "--", "true")
DEGRADE = ["--degrade", "memory"] if b"--degrade memory" in probe.stderr else []
MEMORY_HELD = not DEGRADE


def run(*words, flags=(), **more):
    return dw("run", *DEGRADE, *flags, "--", *words, **more)


def shell(script, flags=(), **more):
    return run("sh", "-c", script, flags=flags, **more)


def final(*words, flags=(), **more):
    """The final record by --status-fd, and the process."""
    read, write = os.pipe()
    done = dw("run", *DEGRADE, *flags, "--status-fd", str(write), "--", *words, pass_fds=[write], **more)
    os.close(write)
    with os.fdopen(read) as f:
        text = f.read()
    return (json.loads(text) if text else {}), done


def start(*words, flags=(), **more):
    more = {"env": env, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
            "cwd": top + "/work", **more}
    return subprocess.Popen([DOORWARD, "run", *DEGRADE, *flags, "--", *words], **more)


def marked(mark=MARK):
    """Host processes with our mark in their arguments; a zombie has none."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words and int(path.split("/")[2]) != os.getpid():
            found.append(path)
    return found


def groups():
    """Control group folders that have the name of one of our runs."""
    runs = set(os.listdir(STATE + "/runs")) if os.path.isdir(STATE + "/runs") else set()
    return [f for f, folders, _ in os.walk("/sys/fs/cgroup") if any(run in f for run in runs)]


def mounts():
    with open("/proc/self/mountinfo") as f:
        return len(f.readlines())


def wait_until(holds, seconds=1.0):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def ps():
    return json.loads(dw("ps", "-a", "--json").stdout)["runs"]


# --- how it ends -----------------------------------------------------------------------------------------------------

def ends():
    rows = [
        ("exit 0", ["true"], 0, "completed"),
        ("exit 1", ["false"], 1, "failed"),
        ("exit 42", ["sh", "-c", "exit 42"], 42, "failed"),
        ("exit 255", ["sh", "-c", "exit 255"], 255, "failed"),
        ("exit 124 is not the deadline", ["sh", "-c", "exit 124"], 124, "failed"),
        ("exit 125 is not an error of ours", ["sh", "-c", "exit 125"], 125, "failed"),
        ("SIGKILL", ["sh", "-c", "kill -9 $$"], 137, "failed"),
        ("SIGSEGV", ["sh", "-c", "kill -SEGV $$"], 139, "failed"),
        ("SIGTERM", ["sh", "-c", "kill -TERM $$"], 143, "failed"),
        ("a name that is nowhere", ["no-such-program"], 127, "failed"),
        ("a path that is nowhere", ["/no/such/program"], 127, "failed"),
        ("a file that is no program", ["/etc/passwd"], 126, "failed"),
        ("a folder", ["/usr"], 126, "failed"),
    ]
    for name, words, status, stop in rows:
        record, done = final(*words)
        check(f"{name}: {stop}, exit {status}", (done.returncode, record.get("stop"), record.get("exit")) ==
              (status, stop, status), done, record)
    check("what was not found is named", b"no-such-program" in run("no-such-program").stderr)


def limits():
    record, done = final("sleep", "30", flags=["--timeout", "500ms"])
    check("the deadline is limit:wall, 124", (done.returncode, record["stop"]) == (124, "limit:wall"), done, record)
    check("it says figure, cap and remedy", b"500ms" in done.stderr and b"--timeout" in done.stderr, done.stderr)
    before = time.monotonic()
    record, done = final("yes", flags=["--output", "100kB"])
    check("a flood is limit:output, 124", (done.returncode, record["stop"]) == (124, "limit:output"), done.stderr, record)
    check("exactly the allowed bytes came through", len(done.stdout) == 100000, len(done.stdout))
    check("it ended at once", time.monotonic() - before < 10)
    with open(f"{STATE}/runs/{record['run']}/steps/main/stdout", "rb") as f:
        check("and exactly those are kept", f.read() == done.stdout)
    record, done = final("sh", "-c", "echo 12345", flags=["--output", "6"])
    check("the whole allowance may be used", record["stop"] == "completed" and done.stdout == b"12345\n", record, done)
    record, done = final("sh", "-c", "echo x", flags=["--output", "0"])
    check("none means none", record["stop"] == "limit:output" and done.stdout == b"", record, done)
    bomb = "import os\ntry:\n  while True:\n    if os.fork() == 0: os.pause() if hasattr(os, 'pause') else __import__('time').sleep(60)\nexcept OSError as e: print(e.errno)"
    record, done = final("python3", "-c", bomb, flags=["--processes", "20"])
    hit = [h for h in record["limits_hit"] if h["limit"] == "processes"]
    check("too many processes fail inside, EAGAIN", done.stdout == b"11\n" and record["stop"] == "completed", done, record)
    if MEMORY_HELD:
        check("and are listed as a soft limit", len(hit) == 1 and hit[0]["hard"] is False and hit[0]["cap"] == 20, record)
    record, done = final("sh", "-c", "head -c 20000000 /dev/zero > /tmp/x; echo $?", flags=["--disk", "4MiB"])
    hit = [h["limit"] for h in record["limits_hit"]]
    check("a full space is soft", done.stdout == b"1\n" and record["stop"] == "completed" and hit == ["disk"], done, record)
    eat = "x = bytearray(600000000)"
    if MEMORY_HELD:
        record, done = final("python3", "-c", eat, flags=["--memory", "64MiB"])
        check("the main process killed for memory: limit:memory, 137",
              (done.returncode, record["stop"]) == (137, "limit:memory"), done, record)
        record, done = final("sh", "-c", f"python3 -c '{eat}'; exit 0", flags=["--memory", "64MiB"])
        hit = [h["limit"] for h in record["limits_hit"]]
        check("a child killed for memory: completed, and on record", record["stop"] == "completed" and hit == ["memory"],
              done, record)
    record, done = final("sh", "-c", "dw refuse 'this would harm' && exit 3")
    check("a refusal: 76", (done.returncode, record["stop"]) == (76, "refused") and "this would harm" in record["message"],
          done, record)
    record, done = final("sh", "-c", "dw refuse 'slow'; sleep 30", flags=["--timeout", "1s"])
    check("a refusal does not outrank the deadline", record["stop"] == "limit:wall", record)


def in_time():
    before = time.monotonic()
    done = shell(f"sleep {MARK} & echo done", flags=["--timeout", "30s"])
    check("a background child keeps nothing open", done.stdout == b"done\n" and done.returncode == 0 and
          time.monotonic() - before < 5, done)
    check("and is gone", not marked())
    done = shell(f"sleep {MARK} & head -c 1000000 /dev/zero")
    check("the last megabyte before the end arrives", len(done.stdout) == 1000000, len(done.stdout))
    before = time.monotonic()
    script = f"trap '' TERM INT HUP; (setsid sleep {MARK} &); while :; do :; done"
    record, done = final("sh", "-c", script, flags=["--timeout", "1s"])
    took = time.monotonic() - before
    check("the deadline holds against trap and setsid", record["stop"] == "limit:wall" and took < 6, record, took)
    check("nothing of the worker is left", not marked(), marked())
    check("no control group is left", not groups(), groups())


def stopped():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        p = start("sh", "-c", f"echo up; exec sleep {MARK}")
        p.stdout.read(3)
        p.send_signal(number)
        status = p.wait(20)
        check(f"{number.name}: stopped, 143, nothing left", status == 143 and not marked() and not groups(), status, marked())
        p.communicate()
    p = start("sh", "-c", f"trap 'echo tidied; exit 0' TERM; echo up; sleep {MARK} & wait")
    p.stdout.read(3)
    p.send_signal(signal.SIGTERM)
    out, _ = p.communicate(timeout=20)
    check("the worker may put its things in order", out == b"tidied\n" and p.returncode == 143, out, p.returncode)
    p = start("sh", "-c", f"trap '' TERM; echo up; while :; do sleep 0.1; done")
    p.stdout.read(3)
    before = time.monotonic()
    p.send_signal(signal.SIGTERM)
    p.wait(20)
    check("but not for ever", p.returncode == 143 and time.monotonic() - before < 4, p.returncode)
    p.communicate()
    bad = []
    for ms in range(0, 12):
        p = start("sleep", MARK)
        time.sleep(ms / 1000)
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=20)
        if p.returncode not in (143, -signal.SIGTERM) or marked():
            bad.append((ms, p.returncode))
    check("SIGTERM at any moment of the start", not bad, bad)
    check("and no group is left", not groups(), groups())


# --- a controller that dies ------------------------------------------------------------------------------------------

def killed():
    bad, lost = [], 0
    before = len(ps())
    slower = 8 if os.environ.get("DOORWARD_SANITIZED") else 1  # so that the same stages of the start are hit
    for ms in [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 25, 60, 100, 150, 200]:
        p = start("sh", "-c", f"(setsid sleep {MARK} &); sleep {MARK} | cat | cat")
        time.sleep(slower * ms / 1000)
        p.kill()
        p.wait()
        if not wait_until(lambda: not marked()):
            bad.append((ms, marked()))
        p.stdout.close()
        p.stderr.close()
    check("kill -9 of the controller: everything gone within a second", not bad, bad)
    done = dw("ps", "-a", "--json")
    after = json.loads(done.stdout)["runs"]
    states = {r["state"] for r in after}
    lost = [r for r in after if r["state"] == "lost"]
    check("the next command marks them lost", len(lost) >= 4 and not states & {"running", "unfinished", "damaged"}, states)
    check("and says so", done.stderr.count(b"on record as lost") >= 1, done.stderr)
    check("their control groups are gone", not groups(), groups())
    check("nothing of it a second time", dw("ps").stderr == b"")
    bad = [done for done in (dw("verify", r["run"]) for r in lost) if done.returncode != 0]
    check("their journals are whole", not bad, bad)
    check("lost is exit 125", all(r["exit"] == 125 for r in lost), lost)
    check("runs that had not begun left no folder", len(after) == len(os.listdir(STATE + "/runs")))
    with open(STATE + "/live") as f:
        check("no slot is taken", f.read().strip() == "")


def killed_late():
    """A controller that dies while it collects, records, ends."""
    flags = [w for n in range(6) for w in ("--export", f"e{n}=/out/{n}")]
    script = "for i in 0 1 2 3 4 5; do head -c 200000 /dev/urandom > /out/$i; done"
    p = start("sh", "-c", script, flags=flags)
    before = time.monotonic()
    p.communicate()
    whole = time.monotonic() - before
    runs = len(ps())
    for i in range(24):
        p = start("sh", "-c", script, flags=flags)
        time.sleep(whole * (0.3 + i / 24))
        p.kill()
        p.communicate()
    wait_until(lambda: not groups())
    after = ps()
    mine = after[:len(after) - runs]
    check("killed near its end: each run ends as lost or completed", {r["state"] for r in mine} <= {"lost", "completed"} and
          any(r["state"] == "lost" for r in mine), [r["state"] for r in mine])
    bad = [done for done in (dw("verify", r["run"]) for r in mine) if done.returncode != 0]
    check("every journal is whole and every recorded export is in the store", not bad, bad[:2])
    check("no half-written blob, no group, no slot", not glob.glob(STATE + "/blobs/incoming/*") and not groups() and
          not open(STATE + "/live").read().strip(), glob.glob(STATE + "/blobs/incoming/*"), groups())
    wrong = [path for path in glob.glob(STATE + "/blobs/sha256/??/*") if os.path.getsize(path) != 200000]
    check("a blob is never partly there", not wrong, wrong)


def launcher_of(p):
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name == "doorward-launch" and int(rest.split()[1]) == p.pid:
            found.append(int(path.split("/")[2]))
    return found


def helpers():
    p = start("sh", "-c", f"echo up; (setsid sleep {MARK} &); sleep {MARK}", flags=["--export", "x=/out/x"])
    p.stdout.read(3)
    found = launcher_of(p)
    check("the launcher is a child of the controller", len(found) == 1, found)
    os.kill(found[0], signal.SIGKILL)
    _, err = p.communicate(timeout=20)
    check("a killed launcher: error, 125, it says so", p.returncode == 125 and b"signal 9" in err, p.returncode, err)
    check("and nothing is left", wait_until(lambda: not marked()) and not groups(), marked(), groups())
    p = start("sh", "-c", f"echo up; sleep {MARK}", flags=["--timeout", "300ms"])
    p.stdout.read(3)
    os.kill(launcher_of(p)[0], signal.SIGSTOP)
    before = time.monotonic()
    _, err = p.communicate(timeout=40)
    check("one that sleeps past the deadline is killed, the step with it", p.returncode == 125 and time.monotonic() - before < 20
          and wait_until(lambda: not marked()) and not groups(), p.returncode, err, groups())
    own = os.path.dirname(DOORWARD)
    elsewhere = [os.path.join(f, "doorward-launch") for f in (own, own + "/../libexec/doorward")]
    launch = [f for f in elsewhere if os.path.exists(f)][0]
    for what, prepare in (("missing", lambda to: None), ("not executable", lambda to: (shutil.copy(launch, to), os.chmod(to, 0o600))),
                          ("another program", lambda to: shutil.copy("/bin/true", to)),
                          ("no program", lambda to: (open(to, "w").write("x"), os.chmod(to, 0o755)))):
        place = tempfile.mkdtemp(dir=top)
        shutil.copy(DOORWARD, place + "/doorward")
        main = os.path.dirname(launch) + "/doorward-main"  # where doorward is a small front of it
        if os.path.exists(main):
            shutil.copy(main, place)
        prepare(place + "/doorward-launch")
        done = subprocess.run([place + "/doorward", "run", *DEGRADE, "--", "echo", "ran"], env=env, cwd=top + "/work",
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        installed = what == "missing" and done.returncode == 0  # this host has one where make install puts it
        check(f"a launcher that is {what}: nothing runs, 125", installed or (done.returncode == 125 and not done.stdout and
              b"launch" in done.stderr), done)
    shutil.copy(launch, place + "/doorward-launch")
    done = subprocess.run([place + "/doorward", "run", *DEGRADE, "--", "echo", "ran"], env=env, cwd=top + "/work",
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    check("one without its init: nothing runs, 125, and it is named", done.returncode == 125 and not done.stdout and
          b"doorward-init" in done.stderr, done)


def together():
    runs = [start("sh", "-c", "cat /proc/self/uid_map; sleep 0.3") for _ in range(8)]
    maps = [p.communicate(timeout=60)[0].split()[:3] for p in runs]
    check("eight at a time complete", all(p.returncode == 0 for p in runs), [p.returncode for p in runs])
    if ROOT:
        outside = {m[1] for m in maps}
        check("each with host ids of its own, none of them 0", len(outside) == 8 and all(int(o) >= 0x70000000 for o in outside),
              maps)
    with open(STATE + "/live") as f:
        check("and every slot is free again", not f.read().strip())


def remains():
    mounted, listed = mounts(), set(os.listdir("/tmp"))
    for i in range(30):
        p = start("sleep", MARK if i % 3 else "0")
        time.sleep(0.005 * (i % 7))
        if i % 3 == 1:
            p.kill()
        if i % 3 == 2:
            p.send_signal(signal.SIGINT)
        p.communicate(timeout=20)
    wait_until(lambda: not marked())
    run("true")
    check("interrupted runs leave no process, group or mount", not marked() and not groups() and mounts() == mounted,
          marked(), groups())
    runs = os.listdir(STATE + "/runs")
    check("and nothing in /tmp", not [n for n in set(os.listdir("/tmp")) - listed if any(run in n for run in runs)])
    check("the table of live runs does not grow", os.path.getsize(STATE + "/live") <= 32 * 32)
    check("no half-written blob", not glob.glob(STATE + "/blobs/incoming/*"))


# --- what the worker gets --------------------------------------------------------------------------------------------

def descriptors():
    with open(top + "/canary", "w") as f:
        f.write("CANARY")
    file, folder = os.open(top + "/canary", os.O_RDONLY), os.open("/", os.O_RDONLY)
    near, far = socket.socketpair()
    for source, number in ((file, 9), (near.fileno(), 20), (folder, 1500)):
        os.dup2(source, number)
        os.set_inheritable(number, True)
    script = "for i in 3 4 9 20 1500; do [ -e /proc/self/fd/$i ] && echo $i; done; cat <&9; echo x >&20; cd /proc/self/fd/1500"
    control = subprocess.run(["sh", "-c", "cat <&9"], capture_output=True, close_fds=False)
    check("control: the descriptors are inherited outside", control.stdout == b"CANARY", control)
    done = shell("ls /proc/self/fd; " + script, close_fds=False)
    seen = done.stdout.split()
    check("descriptors 9, 20 and 1500 do not reach the worker", seen == [b"0", b"1", b"2", b"3"] and b"CANARY" not in
          done.stdout, done)  # 3 is the folder that ls itself reads
    far.setblocking(False)
    try:
        got = far.recv(10)
    except BlockingIOError:
        got = b""
    check("nothing arrived on the socket", got == b"")
    for number in (9, 20, 1500, file, folder):
        os.close(number)


def streams():
    read, write = os.pipe()
    before = time.monotonic()
    done = run("cat", stdin=read)
    check("standard input is at its end", done.returncode == 0 and time.monotonic() - before < 5, done)
    done = run("cat", flags=["-i"], input=b"passed\n", stdin=None)
    check("with -i it is passed", done.stdout == b"passed\n", done)
    blob = os.urandom(300000)
    done = run("cat", flags=["-i"], input=blob, stdin=None)
    check("whole, in both directions", done.stdout == blob, len(done.stdout))
    done = run("true", flags=["-i"], stdin=read)
    check("input that nobody reads does not hold us", done.returncode == 0)
    os.close(read)
    os.close(write)
    script = f'exec "$@" 0<&- 1>&- 2>&-'
    done = subprocess.run(["sh", "-c", script, "sh", DOORWARD, "run", *DEGRADE, "--", "sh", "-c", "echo hi; exit 7"],
                          env=env, cwd=top + "/work")
    check("with 0, 1 and 2 closed at the start", done.returncode == 7, done)
    journal = max(glob.glob(STATE + "/runs/*/journal.jsonl"))
    with open(journal) as f:
        check("no output went into a file of ours", all(json.loads(line)["type"] for line in f))
    p = start("sh", "-c", "while :; do echo line; done", flags=["--timeout", "1s", "--output", "1GB"])
    before = time.monotonic()
    time.sleep(2.5)
    check("a reader that sleeps does not hold the deadline", not marked() and any(
        r["state"] == "limit:wall" for r in ps()[:1]), ps()[:1])
    out = p.stdout.read()
    p.communicate()
    check("and gets what it was owed", p.returncode == 124 and len(out) >= 65536, p.returncode, len(out))
    p = start("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done; exit 9")
    p.stdout.close()
    p.stderr.close()
    check("a reader that goes away does not disturb", p.wait(20) == 9)
    done = shell("echo out; echo err >&2")
    check("the streams stay apart", (done.stdout, done.stderr) == (b"out\n", b"err\n"), done)


def folders():
    for folder in ("..", ".", "relative", "/work/..", "//", "/x" * 2500, "/nowhere", "/proc/1/root", "", "~"):
        done = run("sh", "-c", "echo probe > ../probe; echo ran", flags=["--workdir", folder])
        check(f"workdir {folder[:20]!r} is refused before anything runs", done.returncode == 125 and b"ran" not in
              done.stdout and len(done.stderr) > 20, done)


def secrets():
    script = "cat /proc/*/environ /proc/*/task/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; env"
    secret = "CANARY-" + os.urandom(8).hex()
    more = {**env, "SECRET": secret}
    control = subprocess.run(["sh", "-c", script], env=more, capture_output=True)
    check("control: outside the canary is found", secret.encode() in control.stdout)
    done = shell(script, env=more)
    check("our environment is nowhere inside", done.returncode == 0 and secret.encode() not in done.stdout)


def tenants():
    os.makedirs(top + "/ws", exist_ok=True)
    mark = "MARK" + os.urandom(6).hex()
    leave = f"""
import os, socket, ctypes
for folder in ("/ws", "/tmp", "/home/agent", "/dev/shm", "/out"):
    open(folder + "/{mark}", "w").write("{mark}")
libc = ctypes.CDLL(None)
shm = libc.shmget(0x{os.getpid():x}, 4096, 0o1666)
libc.shmat.restype = ctypes.c_void_p
at = libc.shmat(shm, None, 0)
if at not in (None, 2**64 - 1): ctypes.memmove(at, b"{mark}", 16)
s = socket.socket(socket.AF_UNIX); s.bind("\\0{mark}"); s.listen()
print("left", shm >= 0)
"""
    find = f"""
import os, socket, ctypes
found = [p for folder in ("/ws", "/tmp", "/home/agent", "/dev/shm", "/out", "/var/tmp") if os.path.isdir(folder)
         for p in os.listdir(folder) if p == "{mark}"]
if ctypes.CDLL(None).shmget(0x{os.getpid():x}, 4096, 0) >= 0: found.append("shm")
try: socket.socket(socket.AF_UNIX).connect("\\0{mark}"); found.append("socket")
except OSError: pass
for line in open("/proc/net/unix"):
    if "{mark}" in line: found.append("listed")
print(found)
"""
    flags = ["--overlay", top + "/ws:/ws"]
    done = run("python3", "-c", leave + "exec(" + repr(find) + ")", flags=flags)
    check("control: in its own run the marks are found", b"left True" in done.stdout and done.stdout.count(mark.encode()) >= 5
          and b"shm" in done.stdout, done)
    done = run("python3", "-c", find, flags=flags)
    check("the next run finds nothing of the one before", done.stdout == b"[]\n", done)
    check("nor does the host", not os.listdir(top + "/ws") and mark not in os.listdir("/dev/shm"))


def terminal():
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(top + "/work")
        os.execve(DOORWARD, [DOORWARD, "run", *DEGRADE, "-t", "--", "sh", "-c", "tty; stty size; read x; echo got $x"], env)
    termios.tcsetwinsize(master, (33, 77)) if hasattr(termios, "tcsetwinsize") else subprocess.run(
        ["stty", "rows", "33", "cols", "77"], stdin=master)
    before = termios.tcgetattr(master)
    out = b""

    def until(word, seconds=10):
        nonlocal out
        end = time.monotonic() + seconds
        while word not in out and time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    out += os.read(master, 65536)
                except OSError:
                    break
        return word in out

    check("the worker has a terminal of its own", until(b"/dev/pts/0"), out)
    raw = termios.tcgetattr(master)
    check("ours is raw meanwhile", not raw[3] & termios.ECHO)
    os.write(master, b"word\r")
    check("what is typed arrives", until(b"got word"), out)
    _, status = os.waitpid(pid, 0)
    check("and the run completes", os.waitstatus_to_exitcode(status) == 0, status)
    check("the terminal is as before", termios.tcgetattr(master)[3] == before[3])
    os.close(master)
    for how, number in (("SIGTERM", signal.SIGTERM), ("SIGHUP", signal.SIGHUP)):
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(top + "/work")
            os.execve(DOORWARD, [DOORWARD, "run", *DEGRADE, "-t", "--", "sh", "-c", f"echo up; sleep {MARK}"], env)
        before = termios.tcgetattr(master)
        out = b""
        until(b"up")
        os.kill(pid, number)
        end = time.monotonic() + 10
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < end:
            until(b"never", 0.1)
        check(f"after {how} too", termios.tcgetattr(master)[3] == before[3] and not marked(), marked())
        os.close(master)


def harmless_output():
    """Without -t the worker's control sequences do not reach the user's terminal; with --raw they do."""
    def on_terminal(*words):
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(top + "/work")
            os.execve(DOORWARD, [DOORWARD, "run", *DEGRADE, *words, "--", "sh", "-c",
                                 r"printf '\033]0;owned\007\033[2J\033[1;32mgreen\033[0m\n'; printf '\033[31mx\2335m' >&2"], env)
        out = b""
        while True:
            try:
                got = os.read(master, 65536)
            except OSError:
                break
            if not got:
                break
            out += got
        _, status = os.waitpid(pid, 0)
        os.close(master)
        return os.waitstatus_to_exitcode(status), out
    status, out = on_terminal()
    check("a title and a cleared screen are shown as text", status == 0 and rb"\x1b]0;owned\x07\x1b[2J" in out
          and b"\033]" not in out and b"\033[2J" not in out, status, out)
    check("colours pass, are reset, and C1 is shown", b"\033[1;32mgreen\033[0m" in out
          and rb"x\x9b5m" in out and out.rstrip().endswith(b"\033[0m"), out)
    status, out = on_terminal("--raw")
    check("--raw passes them", status == 0 and b"\033]0;owned\007\033[2J" in out, status, out)
    r = subprocess.run([DOORWARD, "run", *DEGRADE, "--", "printf", r"\033[2J\r"], env=env, capture_output=True,
                       cwd=top + "/work", timeout=60)
    check("a pipe gets every byte as it was", r.stdout == b"\033[2J\r", r.stdout)


# --- steps, inputs, exports ------------------------------------------------------------------------------------------

def policy(text, *words, **more):
    with open(top + "/work/task.yaml", "w") as f:
        f.write(text)
    return dw("run", *words, "task.yaml", **more)


def steps():
    degrade = "\n    degrade: [memory]" if DEGRADE else ""
    with open(top + "/work/in.txt", "w") as f:
        f.write("first")
    task = f"""version: 1
task: three
steps:
  one:{degrade}
    shell: echo one; echo left > /tmp/left; sleep 0.4
  two:{degrade}
    shell: ls /tmp; cat /in.txt; exit 5
    inputs:
      /in.txt: {{read: ./in.txt}}
  three:{degrade}
    run: [echo, never]
"""
    with open(top + "/work/task.yaml", "w") as f:
        f.write(task)
    p = subprocess.Popen([DOORWARD, "run", "--status-fd", "2", "task.yaml"], env=env, cwd=top + "/work",
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    p.stdout.read(4)
    with open(top + "/work/in.txt", "w") as f:
        f.write("changed")
    out, err = p.communicate(timeout=30)
    record = json.loads(err.splitlines()[0])
    check("each step is a fresh sandbox, and sees its inputs as the run began", out == b"first", out, err)
    check("the first that does not complete ends the run", p.returncode == 5 and record["stop"] == "failed" and
          record["step"] == "two" and set(record["used"]) == {"one", "two"}, record)
    shown = json.loads(dw("show", record["run"], "--json").stdout)
    check("both are on record", [s["step"] for s in shown["steps"]] == ["one", "two"], shown)
    done = policy(task.replace("shell: echo one", "sehll: echo one"))
    check("a wrong key: nothing runs, 125", done.returncode == 125 and b"shell" in done.stderr and b"task.yaml:" in
          done.stderr and done.stdout == b"", done)
    done = policy(task, "--memory", "1GiB")
    check("flags do not mix with a file", done.returncode == 125 and b"--memory" in done.stderr, done)


def files():
    """Inputs that are files: the worker gets the bytes as they were at the start, with their modes."""
    place = top + "/files"
    os.mkdir(place)
    for name, text, mode in (("tool", "#!/bin/sh\necho tool ran\n", 0o755), ("data", "data\n", 0o644), ("closed", "closed\n", 0o600)):
        with open(f"{place}/{name}", "w") as f:
            f.write(text)
        os.chmod(f"{place}/{name}", mode)
        os.utime(f"{place}/{name}", (10 ** 9, 10 ** 9))
    flags = ["--read", place + "/tool:/in/tool", "--read", place + "/closed:/in/closed", "--copy", place + "/data:/work/data",
             "--export", "data=/work/data"]
    script = "/in/tool; cat /in/closed; stat -c '%a %Y' /in/tool /work/data; echo more >> /work/data; echo x 2>/dev/null >> /in/closed || echo kept"
    record, done = final("sh", "-c", script, flags=flags)
    check("files arrive with mode and time, and read means read", done.stdout ==
          b"tool ran\nclosed\n755 1000000000\n644 1000000000\nkept\n", done)
    blob = json.loads(dw("artifacts", record["run"], "--json").stdout)["artifacts"][0]["blob"]
    check("a copied file can be changed and exported", open(blob).read() == "data\nmore\n")
    check("the original is as it was", open(place + "/data").read() == "data\n")
    again, done = final("cat", "/work/data", flags=flags)
    check("and so is the stored copy", done.stdout == b"data\n", done)
    record, done = final("cat", "/x", flags=["--read", place + "/closed:/x", "--sensitive"])
    with open(f"{STATE}/runs/{record['run']}/journal.jsonl") as f:
        inputs = json.loads(f.readline())["body"]["inputs"]
    check("a sensitive file of a single step is not stored", done.stdout == b"closed\n" and inputs[0].get("live") is True, inputs)
    os.rename(place + "/data", place + "/moved")
    done = run("echo", "ran", flags=flags)
    check("an input that is gone: 125, and named", done.returncode == 125 and b"data" in done.stderr and not done.stdout, done)


def exports():
    os.makedirs(top + "/tree/sub", exist_ok=True)
    with open(top + "/tree/sub/old", "w") as f:
        f.write("old")
    names = ["good", "fifo", "link", "way", "folder", "socket", "huge", "setid", "none", "loop", "dev", "over", "old", "hard"]
    paths = {n: f"/out/{n}" for n in names} | {"way": "/out/dir/x", "over": "/ws/new", "old": "/ws/sub/old", "dev": "/dev/shm/d"}
    script = """
import os, socket
os.chdir("/out")
open("good", "w").write("good")
os.mkfifo("fifo"); os.symlink("/etc/passwd", "link"); os.symlink("/etc", "dir"); os.mkdir("folder")
socket.socket(socket.AF_UNIX).bind("socket")
open("huge", "w").truncate(1 << 36)
open("setid", "w").write("s"); os.chmod("setid", 0o6755)
os.symlink("loop", "loop"); os.link("good", "hard")
open("/dev/shm/d", "w").write("shm"); open("/ws/new", "w").write("new"); open("/ws/sub/old", "a").write("+")
"""
    flags = ["--overlay", top + "/tree:/ws"] + [w for n in names for w in ("--export", f"{n}={paths[n]}")]
    record, done = final("python3", "-c", script, flags=flags)
    check("hostile shapes do not disturb the run", record.get("stop") == "completed", record, done)
    artifacts = {a["name"]: a for a in record["artifacts"]}
    check("regular files are collected, from every writable place", set(artifacts) == {"good", "setid", "over", "old", "hard",
                                                                                      "dev"}, artifacts)
    with open(f"{STATE}/runs/{record['run']}/journal.jsonl") as f:
        records = [json.loads(line) for line in f]
    refused = {r["body"]["name"]: r["body"]["result"] for r in records if r["type"] in ("export.refused", "export.missing")}
    check("the others are refused by type", refused == {"fifo": "not-regular", "link": "link", "way": "link", "folder":
          "not-regular", "socket": "not-regular", "huge": "too-large", "none": "missing", "loop": "link"}, refused)
    listed = {a["name"]: a for a in json.loads(dw("artifacts", record["run"], "--json").stdout)["artifacts"]}
    content = {n: open(listed[n]["blob"]).read() for n in ("good", "over", "old", "dev")}
    check("the bytes are there", content == {"good": "good", "over": "new", "old": "old+", "dev": "shm"}, content)
    mode = stat.S_IMODE(os.stat(listed["setid"]["blob"]).st_mode)
    check("set-id and execute bits are gone", mode == 0o400, oct(mode))
    check("the original is untouched", open(top + "/tree/sub/old").read() == "old" and os.listdir(top + "/tree") == ["sub"])
    check("verify agrees", dw("verify", record["run"]).returncode == 0)
    record, done = final("sh", "-c", "echo part > /out/a; exit 3", flags=["--export", "a=/out/a"])
    check("a failed step's exports are incomplete", record["artifacts"][0]["incomplete"] is True, record)
    record, done = final("sh", "-c", "echo part > /out/a; sleep 30", flags=["--export", "a=/out/a", "--timeout", "500ms"])
    check("so are those of one that ran out of time", record["stop"] == "limit:wall" and record["artifacts"][0]["incomplete"],
          record)


# --- hosts and callers that are not kind -----------------------------------------------------------------------------

def starved():
    def with_limit(how):
        return subprocess.run(["sh", "-c", f'ulimit {how}; exec "$@"', "sh", DOORWARD, "run", *DEGRADE, "--", "echo", "ran"],
                              env=env, cwd=top + "/work", capture_output=True, stdin=subprocess.DEVNULL, timeout=60)

    bad = []
    for n in [*range(4, 30), 40, 64, 100, 255]:
        done = with_limit(f"-n {n}")
        if done.returncode != 125 or done.stdout or b"ulimit -n" not in done.stderr:
            bad.append((n, done))
    check("without descriptors: 125 and the remedy", not bad, bad[:2])
    check("a soft limit is no hindrance", with_limit("-Sn 20").stdout == b"ran\n", with_limit("-Sn 20"))
    check("nothing is left of those", not marked() and not groups(), groups())


def full():
    small = {**env, "XDG_STATE_HOME": top + "/small"}
    os.makedirs(top + "/small/doorward/runs", 0o700, exist_ok=True)
    os.chmod(top + "/small/doorward", 0o700)
    mounted = ROOT and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "small", top + "/small"]).returncode == 0
    if not mounted:  # the same write errors, by a limit of the process
        done = subprocess.run(["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", DOORWARD, "run", *DEGRADE, "--", "echo", "ran"],
                              env=small, cwd=top + "/work", capture_output=True, stdin=subprocess.DEVNULL)
        check("state that cannot be written: nothing runs, 125", done.returncode == 125 and b"ran" not in done.stdout, done)
        return
    try:
        os.makedirs(top + "/small/doorward", 0o700)
        filler = os.open(top + "/small/filler", os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(filler, b"x" * 4096)
        except OSError:
            os.close(filler)
        done = run("echo", "ran", env=small)
        check("a full disk: nothing runs, 125, and it says what to free", done.returncode == 125 and b"ran" not in done.stdout
              and b"space" in done.stderr, done)
        os.unlink(top + "/small/filler")
        done = run("echo", "ran", env=small)
        check("control: with space it runs", done.returncode == 0 and done.stdout == b"ran\n", done)
        done = run("sh", "-c", "head -c 200000 /dev/zero; echo end >&2", env=small)
        check("a copy of the output that does not fit: the run goes on, all arrives", done.returncode == 0 and
              len(done.stdout) == 200000, done.returncode, done.stderr)
        check("and the journal is whole", dw("verify", "last", env=small).returncode == 0 and
              b"copy_failed" in dw("log", "last", "--json", env=small).stdout, dw("verify", "last", env=small))
    finally:
        subprocess.run(["umount", top + "/small"])


def places():
    for what, prepare, word in (
            ("open to others", lambda p: (os.makedirs(p, 0o755), os.chmod(p, 0o755)), b"chmod 700"),
            ("a file", lambda p: (os.makedirs(os.path.dirname(p), exist_ok=True), open(p, "w").close()), b"not a folder"),
            ("a link", lambda p: (os.makedirs(os.path.dirname(p), exist_ok=True), os.symlink("/tmp", p)), b"not a folder")):
        place = tempfile.mkdtemp(dir=top)
        prepare(place + "/doorward")
        done = run("echo", "ran", env={**env, "XDG_STATE_HOME": place})
        check(f"a state folder that is {what}", done.returncode == 125 and word in done.stderr and not done.stdout, done)
    done = run("echo", "ran", env={**env, "XDG_STATE_HOME": "relative"})
    check("a relative state folder", done.returncode == 125 and b"XDG_STATE_HOME" in done.stderr, done)
    done = run("echo", "ran", env={**env, "XDG_STATE_HOME": top + "/new/deep/er"})
    check("one that is missing is made, closed", done.returncode == 0 and
          stat.S_IMODE(os.stat(top + "/new/deep/er/doorward").st_mode) == 0o700, done)
    if not ROOT:
        os.makedirs(top + "/closed")
        os.chmod(top + "/closed", 0o500)
        done = run("echo", "ran", env={**env, "XDG_STATE_HOME": top + "/closed/x"})
        check("one that cannot be made", done.returncode == 125 and b"XDG_STATE_HOME" in done.stderr, done)


def callers():
    rows = [
        ("no command", ["run"], b"no command"),
        ("an empty command", ["run", "--"], b"no command"),
        ("an unknown flag", ["run", "--memroy", "1GiB", "--", "true"], b"--memory"),
        ("a flag without value", ["run", "--memory"], b"needs a value"),
        ("a command without --", ["run", "true"], b"doorward run -- true"),
        ("a missing input", ["run", "--read", "/no/such:/x", "--", "echo", "ran"], b"/no/such"),
        ("a loop of links", ["run", "--read", top + "/loop:/x", "--", "echo", "ran"], b"loop"),
        ("an absurd size", ["run", "--memory", "99999999999TiB", "--", "echo", "ran"], b"memory"),
        ("a negative size", ["run", "--disk", "-1", "--", "echo", "ran"], b"disk"),
        ("an unknown wall", ["run", "--degrade", "secomp", "--", "echo", "ran"], b"seccomp"),
        ("a status descriptor that is closed", ["run", "--status-fd", "77", "--", "echo", "ran"], b"--status-fd"),
        ("a status descriptor that is a word", ["run", "--status-fd", "x", "--", "echo", "ran"], b"--status-fd"),
        ("an argument that is too long", ["run", *DEGRADE, "--env", "A=" + "x" * 131000, "--", "echo", "y" * 131071], b""),
        ("-t with --json", ["run", *DEGRADE, "-t", "--json", "--", "echo", "ran"], b"exclude"),
        ("an unknown verb", ["rnu"], b"doorward run"),
    ]
    os.symlink("loop", top + "/loop")
    for name, words, said in rows:
        done = dw(*words)
        if not said:  # allowed by the kernel's own limit, so by ours
            check(f"{name} by a byte is not", done.returncode in (0, 125), done.stderr[:200])
            continue
        check(f"{name}: 125, and named", done.returncode == 125 and said in done.stderr and b"ran" not in done.stdout, done)
    for name, word in (("an argument", b"a\xff"), ("a program", b"\xc0\xaf")):
        done = subprocess.run([DOORWARD.encode(), b"run", *[w.encode() for w in DEGRADE], b"--", b"echo" if name != "a program"
                               else word, word], env=env, cwd=top + "/work", capture_output=True, stdin=subprocess.DEVNULL)
        check(f"{name} that is not UTF-8: 125, with the offset", done.returncode == 125 and re.search(rb"\b[01]\b", done.stderr)
              is not None and not done.stdout, done)
    done = dw("run", "--json", *DEGRADE, "--", "sh", "-c", "echo hidden; exit 3")
    record = json.loads(done.stdout)
    check("--json prints the final record alone", record["stop"] == "failed" and done.returncode == 3 and done.stderr == b"", done)
    with open(f"{STATE}/runs/{record['run']}/steps/main/stdout") as f:
        check("and the output is kept", f.read() == "hidden\n")
    done = dw("run", "--json", "--memory", "x", "--", "true")
    check("also of a run that never began", json.loads(done.stdout)["stop"] == "error" and done.returncode == 125, done)
    big = [f"{i:01000}" for i in range(1500)]
    done = run("sh", "-c", "echo $#", "sh", *big)
    check("a million and a half bytes of arguments arrive", done.stdout == b"1500\n", done.stderr[:300])
    gone = tempfile.mkdtemp(dir=top)
    done = subprocess.run(["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', gone, DOORWARD, "run", *DEGRADE, "--", "echo", "ran"],
                          env=env, capture_output=True, stdin=subprocess.DEVNULL)
    check("a current folder that is gone: 125, and named", done.returncode == 125 and b"current folder" in done.stderr, done)


def whole():
    runs = ps()
    bad = [r for r in runs if r["state"] in ("running", "unfinished", "damaged", "gone")]
    check(f"of {len(runs)} runs each has ended on record", not bad and len(runs) > 50, bad[:3])
    verified = [dw("verify", r["run"]).returncode for r in runs[:40]]
    check("and the journals are whole", not any(verified), verified)


try:
    for part in sys.argv[1:] or ["ends", "limits", "in_time", "stopped", "killed", "killed_late", "helpers", "together", "remains", "descriptors", "streams", "folders",
                                 "secrets", "tenants", "terminal", "harmless_output", "steps", "files", "exports", "starved", "full", "places", "callers",
                                 "whole"]:
        before = time.monotonic()
        globals()[part]()
        print(f"# {part}: {time.monotonic() - before:.1f} s")
finally:
    shutil.rmtree(top, ignore_errors=True)
finish()
