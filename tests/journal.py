#!/usr/bin/python3
"""ps, show, log and verify on journals that this program writes itself, by docs/journal.md and not by doorward's code:
forged names, changed records, a writer killed in the middle of a line, a run that is followed."""
import datetime
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from tap import check, finish

DOORWARD = os.environ["DOORWARD"]
SOURCE = os.environ["DOORWARD_SOURCE"]


def canonical(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return re.sub(r"\\u00([0-9a-f]{2})", lambda m: "\\u00" + m[1].upper(), text)


class Journal:
    """Writes records as docs/journal.md says."""

    def __init__(self, run):
        self.run, self.prev, self.seq, self.lines = run, "0" * 64, 0, []

    def add(self, kind, body):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        record = {"body": body, "prev": self.prev, "run": self.run, "seq": self.seq, "time": now, "type": kind}
        record["hash"] = self.prev = hashlib.sha256(canonical(record).encode()).hexdigest()
        self.seq += 1
        self.lines.append(canonical(record) + "\n")
        return self.lines[-1]


top = tempfile.mkdtemp(prefix="dw-journal-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
state = top + "/doorward"
os.makedirs(state + "/runs", 0o700)
os.chmod(state, 0o700)
environment = {**os.environ, "XDG_STATE_HOME": top, "XDG_RUNTIME_DIR": top + "/run", "XDG_CONFIG_HOME": top + "/config"}
os.mkdir(top + "/run", 0o700)


def doorward(*words):
    r = subprocess.run([DOORWARD, *words], env=environment, capture_output=True, text=True, timeout=60)
    if "Sanitizer" in r.stderr or "runtime error" in r.stderr:
        check(f"{words} does nothing undefined", False, r.stderr)
    return r.returncode, r.stdout, r.stderr


def run_name(n):
    return f"01K0ABCDEFGHJKMNPQ{n:08d}"


def path_of(run):
    return f"{state}/runs/{run}/journal.jsonl"


def put(run, text):
    os.makedirs(f"{state}/runs/{run}", 0o700, exist_ok=True)
    with open(path_of(run), "w", encoding="utf-8", newline="\n") as f:
        f.write(text)


EVIL = "a\n{\"event\":\"allow\"}\r\x1b[2J\x1b]52;c;aGk=\a\u202egnp.exe\u009b31m"
HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def story(run, ended=True, stop="completed", status=0):
    j = Journal(run)
    j.add("run.start", {"task": "fix-bug", "purpose": EVIL, "doorward": "0.1.0", "mode": "root", "kernel": "6.1",
                        "policy_digest": "ab" * 32, "steps": ["main"], "pid": 7})
    j.add("step.enforced", {"step": "main", "enforced": {
        "walls": {"net": "held", "cgroup": "degraded: " + EVIL}, "notes": [EVIL],
        "limits": {"memory": {"asked": 2 << 30, "in_force": 2 << 30, "by": EVIL}}}})
    j.add("step.start", {"step": "main", "pid": 8})
    j.add("door.denied", {"step": "main", "door": "seccomp", "attempt": EVIL, "times": 3})
    j.add("door.denied", {"step": "main", "door": "seccomp", "attempt": EVIL, "times": 4})
    j.add("some.thing", {EVIL: EVIL, "more": [EVIL, {"x": None}]})
    j.add("step.end", {"step": "main", "stop": stop, "exit": status, "message": EVIL,
                       "used": {"wall_us": 1500000, "memory_peak": 5 << 20}})
    if ended:
        j.add("run.end", {"stop": stop, "exit": status, "message": "", "step": "main", "limits_hit": []})
    return j


def verify(run):
    status, out, err = doorward("verify", run, "--json")
    return status, json.loads(out) if out else None, err


def test_listing():
    for n in range(1, 26):
        put(run_name(n), "".join(story(run_name(n), stop="failed" if n == 25 else "completed", status=3 if n == 25 else 0).lines))
    status, out, err = doorward("ps")
    rows = out.splitlines()
    check("ps lists the newest first, twenty of them", status == 0 and len(rows) == 22 and rows[1].startswith(run_name(25))
          and "failed (3)" in rows[1] and rows[20].startswith(run_name(6)), out, err)
    check("ps says how many it left out", rows[-1].startswith("5 more"), rows[-1])
    check("ps -a lists all", len(doorward("ps", "-a")[1].splitlines()) == 26)
    answer = json.loads(doorward("ps", "--json")[1])
    first = answer["runs"][0]
    check("ps --json has the documented members", answer["left_out"] == 5 and first["stop"] == "failed" and first["exit"] == 3
          and sorted(first) == ["ended", "exit", "run", "started", "state", "stop", "task", "took_us"], first)
    check("ps --running lists none of them", "no run is running" in doorward("ps", "--running")[1])
    shutil.rmtree(f"{state}/runs/{run_name(20)}")
    check("a removed run is shown as gone", " gone " in [r for r in doorward("ps")[1].splitlines() if run_name(20) in r][0])


def test_names():
    good = [run_name(7), run_name(7).lower(), "00000007"]
    check("a run is found by its name and its last characters",
          all(doorward("log", word)[0] == 0 for word in good), [doorward("log", w)[2] for w in good])
    check("last is the newest", run_name(25) in doorward("log", "last")[1])
    for word, message in (("01K0ABCD", "runs match"), ("7", "at least 4"), ("ZZZZZ", "no run is named"),
                          ("../../etc", "no run is named"), ("a\x1b[2Jbc", "no run is named"), ("", "at least 4")):
        status, out, err = doorward("show", word)
        check(f"{word!r} is refused with a reason", status == 125 and message in err and not HARMFUL.search(err) and not out, err)


def test_harmless():
    run = run_name(7)
    for words in (("show", run), ("log", run), ("ps",), ("show", run, "--json"), ("verify", run), ("verify", run, "--json")):
        status, out, err = doorward(*words)
        check(f"{words[0]} {' '.join(words[2:])} prints nothing that moves a cursor", out and not HARMFUL.search(out), repr(out))
    check("log prints one line per record", len(doorward("log", run)[1].splitlines()) == 9)
    page = doorward("show", run)[1]
    check("show counts what was denied", "7 times" in page and "completed, exit 0" in page and "5.0 MiB" in page, page)
    lines = doorward("log", run, "--json")[1]
    check("log --json is the journal, byte for byte", lines == open(path_of(run), encoding="utf-8", newline="\n").read())


def test_wrong_types():
    """Records whose chain is right and whose members are of any type: somebody as the same user can write those."""
    values = [None, -7, 1 << 62, "x", EVIL, [], {}, True, [{}], {"a": {"b": []}}, ["x", 1]]
    keys = ("step task purpose doorward mode kernel policy_digest steps pid plan_digest program arguments inputs exports enforced door "
            "attempt times reason limit hard cap peak remedy name digest size path why required stop exit message used "
            "limits_hit cut_bytes").split()
    kinds = ("run.start step.plan step.enforced step.start door.denied step.refusal limit.hit export.collected export.missing "
             "export.refused step.end journal.repaired run.lost run.end").split()
    for n, value in enumerate(values):
        run = run_name(500 + n)
        j = Journal(run)
        for kind in kinds:
            j.add(kind, {key: value for key in keys})
            j.add(kind, {**{key: value for key in keys}, "step": "main"})
            j.add(kind, {**{key: value for key in keys}, "step": "main", "enforced": {k: value for k in ("limits", "walls", "notes")},
                         "used": {"wall_us": value, "files": value}})
            j.add(kind, {"step": "main", "enforced": {"limits": {"wall": value, "memory": {"asked": value, "in_force": value, "by": value}},
                                                      "walls": {"net": value}, "notes": [value]}})
        put(run, "".join(j.lines))
        statuses = [doorward(*words)[0] for words in (("show", run), ("show", run, "--json"), ("log", run), ("verify", run), ("ps",))]
        out = doorward("show", run)[1] + doorward("log", run)[1] + doorward("ps")[1]
        check(f"members that are {value!r} everywhere are survived", statuses[0] == statuses[1] == statuses[2] == statuses[4] == 0
              and statuses[3] in (0, 1) and not HARMFUL.search(out), statuses)
        shutil.rmtree(f"{state}/runs/{run}")


def changed(lines, how):
    out = list(lines)
    if how == "a line is cut":
        del out[3]
    elif how == "two are swapped":
        out[3], out[4] = out[4], out[3]
    elif how == "a byte is changed":
        out[3] = out[3].replace('"times":3', '"times":2')
    elif how == "a record is inserted":
        extra = Journal(json.loads(out[3])["run"])
        extra.seq, extra.prev = 3, json.loads(out[2])["hash"]
        out.insert(3, extra.add("door.denied", {"step": "main"}))
    elif how == "the first is cut":
        del out[0]
    elif how == "the last byte is changed":
        out[-1] = out[-1][:-2] + "]\n"
    return out


def test_tampering():
    cases = {"a line is cut": 3, "two are swapped": 3, "a byte is changed": 3, "a record is inserted": 4, "the first is cut": 0,
             "the last byte is changed": 7}
    for n, (how, bad) in enumerate(cases.items()):
        run = run_name(100 + n)
        lines = story(run).lines
        put(run, "".join(lines))
        status, answer, err = verify(run)
        check(f"before {how}: as recorded", status == 0 and answer["ok"] and answer["journal"]["records"] == 8, answer, err)
        put(run, "".join(changed(lines, how)))
        status, answer, err = verify(run)
        check(f"{how}: verify names record {bad}", status == 1 and not answer["ok"] and answer["journal"]["first_bad"] == bad, answer, err)
        out = doorward("verify", run)[1]
        check(f"{how}: so do its words", f"record {bad} does not fit" in out, out)
        status, out, err = doorward("log", run)
        check(f"{how}: log prints what fits and then fails", status == 125 and len(out.splitlines()) == (bad + 1 if bad else 0)
              and "tampered" in err, out, err)


def test_dropped_tail():
    run = run_name(200)
    lines = story(run).lines
    put(run, "".join(lines))
    doorward("ps")
    put(run, "".join(lines[:-2]))
    status, answer, err = verify(run)
    check("a dropped tail of a listed run is noticed", status == 1 and any("head on record" in p for p in answer["problems"]), answer)
    again = story(run)
    put(run, "".join(again.lines))
    status, answer, err = verify(run)
    check("so is a journal written anew", status == 1 and answer["journal"]["state"] == "whole", answer)
    other = run_name(201)
    put(other, "".join(lines))
    status, answer, err = verify(other)
    check("and the journal of another run", status == 1 and any("that of run" in p for p in answer["problems"]), answer)
    check("ps shows it as damaged", " damaged " in [r for r in doorward("ps")[1].splitlines() if other in r][0])


def writer(run, lines, pause, half):
    """Forks a process that holds the lock and writes line by line; at the end half a line, then sleeps until killed."""
    put(run, lines[0])
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            fd = os.open(path_of(run), os.O_WRONLY | os.O_APPEND)
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.write(told, b"x")
            for line in lines[1:]:
                time.sleep(pause)
                os.write(fd, line.encode())
            if half:
                os.write(fd, half.encode())
                time.sleep(60)
        finally:
            os._exit(0)
    os.read(ready, 1)
    os.close(ready)
    os.close(told)
    return pid


def test_follow():
    run = run_name(300)
    lines = story(run).lines
    pid = writer(run, lines, 0.15, None)
    started = time.monotonic()
    check("a run whose controller lives is running", " running " in [r for r in doorward("ps")[1].splitlines() if run in r][0])
    status, out, err = doorward("log", "-f", run)
    took = time.monotonic() - started
    os.waitpid(pid, 0)
    check("log -f goes on until the run ends", status == 0 and len(out.splitlines()) == 9 and "run.end" in out and not err, out, err)
    check("and returns at once then", took < 5, took)


def test_killed_writer():
    run = run_name(400)
    lines = story(run, ended=False).lines
    pid = writer(run, lines[:4], 0, lines[4][:50])
    follower = subprocess.Popen([DOORWARD, "log", "-f", run], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    status, answer, err = verify(run)
    check("half a line of a live writer is no problem", status == 0 and answer["journal"]["state"] == "torn", answer, err)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    out, err = follower.communicate(timeout=20)
    records = [line.split()[1] for line in out.splitlines()[1:]]
    check("log -f sees the controller killed, marks the run lost and ends", follower.returncode == 0
          and records[3:] == ["door.denied", "journal.repaired", "run.lost"], out, err)
    status, answer, err = verify(run)
    check("the cut is a record, and the chain holds", status == 0 and answer["state"] == "lost"
          and answer["journal"]["state"] == "whole", answer, err)
    cut = json.loads(open(path_of(run)).readlines()[4])["body"]
    check("which carries length and digest of what was cut", cut == {
        "cut_bytes": 50, "cut_digest": hashlib.sha256(lines[4][:50].encode()).hexdigest()}, cut)


def test_unfinished():
    """A run of a dead controller that no table of live ones knows."""
    run = run_name(401)
    lines = story(run, ended=False).lines
    put(run, "".join(lines) + lines[0][:9])
    status, answer, err = verify(run)
    check("a torn line is told from tampering", status == 1 and answer["journal"]["state"] == "torn"
          and answer["journal"]["first_bad"] is None and answer["state"] == "unfinished", answer, err)
    check("show tells the whole records", "its last line is incomplete" in doorward("show", run)[1])
    check("ps marks it lost", " lost " in [r for r in doorward("ps")[1].splitlines() if run in r][0])
    status, answer, err = verify(run)
    check("and then its record is whole", status == 0 and answer["state"] == "lost", answer, err)
    status, out, err = doorward("ps", "--running")
    check("nothing is left running", "no run is running" in out, out)


def test_closed_output():
    run = run_name(7)
    with open("/dev/full", "w") as full:
        r = subprocess.run([DOORWARD, "show", run], env=environment, stdout=full, stderr=subprocess.PIPE, text=True)
    check("an answer that cannot be written is an error", r.returncode == 125 and "standard output" in r.stderr, r)


def test_full_disk():
    """A state folder without a free block: what only reads still answers."""
    script = """set -e
mount -t tmpfs -o size=400k,mode=700 none "$1/small"
mkdir -m 700 "$1/small/doorward"
mkdir -m 700 "$1/small/doorward/runs"
cp -r "$1/doorward/runs/$2" "$1/small/doorward/runs/"
"$3" ps >/dev/null
cp -r "$1/doorward/runs/$4" "$1/small/doorward/runs/"
rm -f "$1/small/doorward/doorward.db"*
cat /dev/zero 2>/dev/null >"$1/small/fill" || :
export XDG_STATE_HOME="$1/small"
"$3" ps; "$3" show "$2" | head -n 1; "$3" log "$2" | head -n 1; "$3" verify "$2"
"""
    os.mkdir(top + "/small", 0o700)
    r = subprocess.run(["unshare", "-m" if os.getuid() == 0 else "-Urm", "sh", "-c", script, "sh", top, run_name(8), DOORWARD,
                        run_name(9)], env=environment, capture_output=True, text=True, timeout=60)
    check("ps, show, log and verify answer on a full disk", r.returncode == 0 and run_name(8) in r.stdout
          and run_name(9) in r.stdout and "not compared" in r.stdout and "free some space" in r.stdout, r.stdout, r.stderr)


def test_real_run():
    """A run of doorward's own, with hostile names around it."""
    source = top + "/a\n{\"type\":\"run.end\"}\x1b[2J"
    os.mkdir(source)
    weaker = [word for name in ("cgroup", "memory", "cpus", "processes") for word in ("--degrade", name)] if os.getuid() else []
    r = subprocess.run([DOORWARD, "run", *weaker, "--overlay", source + ":/work", "--export", "r=/out/r\x1b]0;x\a", "--export",
                        "none=/out/none\n", "--", "sh", "-c", "printf x > \"$1\"; exit 3", "sh", "/out/r\x1b]0;x\a"],
                       env=environment, capture_output=True, text=True, timeout=120)
    check("a run ends with the worker's status", r.returncode == 3, r.stdout, r.stderr)
    status, answer, err = verify("last")
    check("its record is whole", status == 0 and answer["ok"] and [e["state"] for e in answer["exports"]] == ["whole"]
          and [p["state"] for p in answer["plans"]] == ["whole"], answer, err)
    run = answer["run"]
    raw = open(path_of(run), "rb").read()
    check("one line is one record, and holds no control character", raw.count(b"\n") == answer["journal"]["records"]
          and not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", raw), raw)
    check("nobody else may read it", os.stat(path_of(run)).st_mode & 0o7777 == 0o600
          and os.stat(state).st_mode & 0o7777 == 0o700)
    page, lines = doorward("show", run)[1], doorward("log", run)[1]
    check("show tells what it could reach, what came out and how it ended", "failed, exit 3" in page and "copy-on-write" in page
          and "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" in page and "none: missing" in page, page)
    check("neither moves a cursor", not HARMFUL.search(page + lines), page, lines)
    check("log has one line per record", len(lines.splitlines()) == answer["journal"]["records"] + 1, lines)
    ok = subprocess.run([sys.executable, "-c", documented_program(), path_of(run)], capture_output=True, text=True)
    check("the program in docs/journal.md accepts it", ok.returncode == 0, ok.stderr)
    rows = dict(re.findall(r"(?m)^\| ([a-z]+\.[a-z]+) \| (.*)$", open(SOURCE + "/docs/journal.md", encoding="utf-8").read()))
    unnamed = [(record["type"], key) for record in map(json.loads, raw.splitlines()) for key in record["body"]
               if not re.search(rf"\b{key}\b", rows.get(record["type"], ""))]
    check("every member of its records stands in docs/journal.md", not unnamed, unnamed)

    plan = f"{state}/runs/{run}/plan-main.json"
    text = open(plan).read()
    open(plan, "w").write(text.replace('"network"', '"netw0rk"') if '"network"' in text else text + " ")
    blob = f"{state}/blobs/sha256/2d/711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    os.chmod(blob, 0o600)
    open(blob, "w").write("y")
    status, answer, err = verify(run)
    check("a changed plan and a changed export are named", status == 1 and answer["plans"][0]["state"] == "changed"
          and answer["exports"][0]["state"] == "changed" and len(answer["problems"]) == 2, answer, err)
    check("show does not pass the changed plan off", "NOT the plan" in doorward("show", run)[1])
    os.unlink(plan)
    os.unlink(blob)
    status, answer, err = verify(run)
    check("missing ones too", status == 1 and answer["plans"][0]["state"] == answer["exports"][0]["state"] == "missing", answer)


def documented_program():
    text = open(SOURCE + "/docs/journal.md", encoding="utf-8").read()
    block = re.search(r"(?m)^(    import hashlib.*\n(?:    .*\n|\n)*)", text)[1]
    return "\n".join(line[4:] for line in block.split("\n"))


def test_documented_program():
    program = documented_program()
    run = run_name(7)
    ok = subprocess.run([sys.executable, "-c", program, path_of(run)], capture_output=True, text=True)
    check("the program in docs/journal.md accepts a journal", ok.returncode == 0, ok.stderr)
    put(run, "".join(changed(story(run).lines, "a byte is changed")))
    bad = subprocess.run([sys.executable, "-c", program, path_of(run)], capture_output=True, text=True)
    check("and refuses a changed one", bad.returncode != 0 and "AssertionError" in bad.stderr, bad.stderr)


try:
    test_listing()
    test_names()
    test_harmless()
    test_wrong_types()
    test_tampering()
    test_dropped_tail()
    test_follow()
    test_killed_writer()
    test_unfinished()
    test_closed_output()
    test_documented_program()
    test_full_disk()
    test_real_run()
finally:
    shutil.rmtree(top)
finish()
