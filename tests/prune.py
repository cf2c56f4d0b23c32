#!/usr/bin/python3
"""prune: what goes, what stays, what is on record of it; what a killed one began, hostile names."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from tap import check, finish

DOORWARD = os.environ["DOORWARD"]
top = tempfile.mkdtemp(prefix="dw-prune-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
state = top + "/doorward"
env = {**os.environ, "XDG_STATE_HOME": top, "XDG_RUNTIME_DIR": top + "/r", "XDG_CONFIG_HOME": top + "/c"}
os.mkdir(top + "/r", 0o700)


def doorward(*words):
    return subprocess.run([DOORWARD, *words], env=env, capture_output=True, text=True, timeout=100)


def runs():
    return sorted(os.listdir(state + "/runs"))


def recorded():
    with open(state + "/pruned.jsonl", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def last_hash(run):
    with open(f"{state}/runs/{run}/journal.jsonl", encoding="utf-8") as f:
        return json.loads(f.readlines()[-1])["hash"]


# An ordinary user without a delegated control group has no limit of memory: that has to be said.
FLAGS = [] if os.getuid() == 0 else ["--degrade", "memory"]
for _ in range(4):
    r = doorward("run", *FLAGS, "--", "true")
    check("a run to prune", r.returncode == 0, r.stderr)
ended = runs()
live = subprocess.Popen([DOORWARD, "run", *FLAGS, "--", "sleep", "200"], env=env, stdout=subprocess.DEVNULL)
deadline = time.monotonic() + 60
while len(runs()) < 5 or not os.path.exists(f"{state}/runs/{runs()[-1]}/journal.jsonl"):
    if time.monotonic() > deadline:
        break
    time.sleep(0.05)
living = runs()[-1]

for words, why in (((), "--older AGE"), (("--older", "soon"), "is no age"), (("--keep", "-1"), "is no count")):
    r = doorward("prune", *words)
    check(f"prune {' '.join(words)} is refused with the remedy", r.returncode == 125 and why in r.stderr, r.stderr)
r = doorward("prune", "--older", "1d", "--json")
check("young runs stay", r.returncode == 0 and json.loads(r.stdout)["pruned"] == [] and len(runs()) == 5, r)
r = doorward("prune", "--keep", "2", "--dry-run", "--json")
answer = json.loads(r.stdout)
check("--dry-run names the oldest and removes none",
      [p["run"] for p in answer["pruned"]] == ended[1::-1] and answer["dry_run"] and len(runs()) == 5, r)

# A folder of a run holds a link: it goes, what it names stays. A changed journal is evidence and stays.
os.mkdir(top + "/victim")
open(top + "/victim/file", "w", encoding="utf-8").close()
os.symlink(top + "/victim", f"{state}/runs/{ended[0]}/link")
os.mkdir(f"{state}/runs/{ended[0]}/folder\n\x1b[2J")
with open(f"{state}/runs/{ended[1]}/journal.jsonl", "r+b") as f:
    f.seek(20)
    f.write(b"#")
head = last_hash(ended[0])
r = doorward("prune", "--keep", "2", "--json")
answer = json.loads(r.stdout or "{}")
why = {k["run"]: k["why"] for k in answer.get("kept", [])}
check("the oldest goes, the changed one, the newest two and the live one stay", runs() == ended[1:] + [living]
      and why.get(ended[1]) == "damaged" and why.get(living) == "live" and why.get(ended[3]) == "newest", r)
check("no link is followed", os.path.exists(top + "/victim/file"))
check("what went is on record with its journal's head",
      [(p["run"], p["journal_head"], p["stop"]) for p in recorded()] == [(ended[0], head, "completed")], recorded())
check("nothing is left in between", os.listdir(state + "/pruned") == [])

# Killed in the middle: what was begun is finished, and recorded, by the next.
os.rename(f"{state}/runs/{ended[2]}", f"{state}/pruned/{ended[2]}")
r = doorward("prune", "--older", "1d")
check("what a killed prune began is finished", r.returncode == 0 and os.listdir(state + "/pruned") == []
      and recorded()[-1]["run"] == ended[2] and recorded()[-1]["stop"] == "completed", r)
r = doorward("verify", ended[3])
check("what stays verifies", r.returncode == 0, r.stdout, r.stderr)

# pruned/ that is a link is no folder of ours.
os.rmdir(state + "/pruned")
os.symlink(top + "/victim", state + "/pruned")
r = doorward("prune", "--keep", "0")
check("a link in place of our folder is refused", r.returncode == 125 and ended[3] in runs()
      and os.listdir(top + "/victim") == ["file"], r)
os.unlink(state + "/pruned")

live.send_signal(signal.SIGKILL)
live.wait()
deadline = time.monotonic() + 60
while living in runs() and time.monotonic() < deadline:
    r = doorward("prune", "--keep", "0", "--json")
    time.sleep(0.2)
stops = {row["run"]: row["stop"] for row in recorded()}
check("a run whose controller was killed goes as lost", runs() == [ended[1]] and stops.get(living) == "lost", r,
      recorded(), runs())
shutil.rmtree(top)
finish()
