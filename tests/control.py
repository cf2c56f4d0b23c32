#!/usr/bin/python3
"""freeze, thaw, stop and wait on a run that works hard; a hostile client; a controller killed while its run is frozen."""
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time

from tap import check, finish

DOORWARD = os.environ["DOORWARD"]
FOLDER = tempfile.mkdtemp()
ENV = dict(os.environ, XDG_STATE_HOME=FOLDER, XDG_RUNTIME_DIR=FOLDER, LC_ALL="C.UTF-8")
DEGRADE = [] if os.geteuid() == 0 else ["--degrade", "memory"]
# Busy, forking, and with a file that tells whether anything went on.
WORK = ("i=0; while [ $i -lt 16 ]; do (while :; do /bin/true; done) & i=$((i+1)); done; "
        "echo started; while :; do echo x >>/tmp/f; done")


def doorward(*words, seconds=60):
    return subprocess.run([DOORWARD, *words], env=ENV, capture_output=True, text=True, timeout=seconds)


def start(*options, work=WORK):
    p = subprocess.Popen([DOORWARD, "run", *DEGRADE, *options, "--", "sh", "-c", work], env=ENV, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    p.stdout.readline()
    return p


def below(pid):
    """Every process below pid, as (pid, name, user and system time)."""
    found, todo = [], [pid]
    while todo:
        here = todo.pop()
        try:
            for thread in os.listdir(f"/proc/{here}/task"):
                todo += [int(c) for c in open(f"/proc/{here}/task/{thread}/children").read().split()]
            stat = open(f"/proc/{here}/stat").read()
        except OSError:
            continue
        name, rest = stat[stat.index("(") + 1:stat.rindex(")")], stat[stat.rindex(")") + 2:].split()
        found.append((here, name, rest[11], rest[12]))
    return sorted(f for f in found if f[1] in ("sh", "true"))


def control_socket():
    runs = os.path.join(FOLDER, "doorward", "runs")
    return os.path.join(runs, max(os.listdir(runs)), "control")


def hostile():
    """Bytes that are no request, a request that does not exist, descriptors, and clients that only connect."""
    path = control_socket()
    header = struct.pack("=IHHII", 0x44574152, 1, 1, 0, 0)
    for packet in (b"", b"x", header[:-1], header + b"extra", struct.pack("=IHHII", 0x44574152, 1, 77, 0, 0),
                   struct.pack("=IHHIII", 0x44574152, 1, 3, 4, 0, 7), b"y" * 20000):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(10)
        s.connect(path)
        s.send(packet)
        if packet:
            yield s.recv(100) == b""
        s.close()
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(path)
    socket.send_fds(s, [struct.pack("=IHHII", 0x44574152, 1, 1, 0, 1)], [0])
    yield s.recv(100) == b""
    many = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(12)]
    for m in many:
        m.setblocking(False)
        try:
            m.connect(path)
        except BlockingIOError:
            pass
    time.sleep(0.1)
    for m in many:
        m.close()


p = start()
check("the socket is its user's alone", os.stat(control_socket()).st_mode & 0o777 == 0o600)
r = doorward("freeze", "last", "--json")
answer = json.loads(r.stdout or "{}")
check("freeze answers when everything is stopped", r.returncode == 0 and answer.get("state") == "frozen", r)
before = below(p.pid)
time.sleep(0.3)
check("nothing goes on while it is frozen", len(before) >= 16 and below(p.pid) == before, before, below(p.pid))
r = doorward("freeze", "last", "--json")
check("a second freeze says so", r.returncode == 0 and json.loads(r.stdout)["already"], r)
check("what is no request closes its client only", all(hostile()))
r = doorward("thaw", "last")
time.sleep(0.3)
check("thaw lets it go on", r.returncode == 0 and below(p.pid) != before, r)
r = doorward("stop", "last")
status = p.wait(30)
check("stop ends it, and says so when it has ended", r.returncode == 0 and "stopped" in r.stdout and status == 143, r, status)
check("the socket is gone", not os.path.exists(control_socket()))
r = doorward("wait", "last")
check("wait exits as the run did", r.returncode == 143, r)
r = doorward("freeze", "last")
check("a run that has ended is no longer asked", r.returncode == 125 and "ended" in r.stderr, r)

p = start("--timeout", "1s")
r = doorward("freeze", "last")
check("a frozen run keeps its deadline", r.returncode == 0 and p.wait(30) == 124, r)
p = start("--timeout", "1s")
r = doorward("freeze", "--hold-clock", "last")
time.sleep(1.5)
held = p.poll() is None
doorward("thaw", "last")
check("its deadline waits where that was asked", r.returncode == 0 and held and p.wait(30) == 124, r, held)

p = start()
doorward("freeze", "last")
inside = below(p.pid)
os.kill(p.pid, signal.SIGKILL)
p.wait(30)
for _ in range(200):
    left = [f for f in inside if os.path.exists(f"/proc/{f[0]}") and
            open(f"/proc/{f[0]}/stat").read().split(")")[-1].split()[0] != "Z"]
    if not left:
        break
    time.sleep(0.05)
check("a frozen run dies with its controller", inside and not left, inside, left)
r = doorward("wait", "last")
check("it is on record as lost", r.returncode == 125 and not os.path.exists(control_socket()), r)
subprocess.run(["rm", "-rf", FOLDER], check=True)
finish()
