#!/usr/bin/python3
"""doorward lab on this host, as whoever runs the tests: every wall holds, and every probe was seen to fail.

Root shows more: some controls need it, and so does leaving the user namespace out."""
import glob, json, os, re, subprocess, tempfile, time

from tap import check, finish

DOORWARD = os.environ["DOORWARD"]
ROOT = os.getuid() == 0
# Nothing may hold a group's memory for an ordinary user here; the lab then rehearses the watching.
WEAKER = [] if ROOT else ["--degrade", "memory"]
top = tempfile.mkdtemp(prefix="doorward-test-lab-")
os.chmod(top, 0o755)
environment = dict(os.environ, XDG_STATE_HOME=top + "/state")


def lab(*words, timeout=300):
    return subprocess.run([DOORWARD, "lab", *words], env=environment, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:  # it ended meanwhile
        return b""


def leftovers():
    groups = [d for d, _, _ in os.walk("/sys/fs/cgroup") if os.path.basename(d).startswith("doorward-")]
    lines = [read(p) for p in glob.glob("/proc/[0-9]*/cmdline")]
    with open("/proc/self/mountinfo") as f:
        mounts = sorted(line.split()[4] for line in f)
    return sorted(groups), [l for l in lines if b"\0linger\0" in l], mounts, sorted(glob.glob("/tmp/doorward-lab-*"))


def nothing_new(before, n):
    """Other runs may come and go beside; what stays is left."""
    new = set(leftovers()[n]) - set(before)
    for _ in range(600):
        if not new:
            break
        time.sleep(0.1)
        new &= set(leftovers()[n])
    return not new, new


def test_list():
    r = lab("--list", "--json")
    rows = json.loads(r.stdout)
    check("the list names every probe and what must hold", r.returncode == 0 and len(rows) > 60 and
          all(row["must"] and row["case"] for row in rows), r.stderr)
    check("a probe of a wall says which wall", all((row["walls"] != "-") == (row["kind"] == "wall") for row in rows))
    names = {row["probe"] for row in rows}
    page = open(os.path.join(os.environ["DOORWARD_SOURCE"], "docs/lab.md"), encoding="utf-8").read()
    told = set(re.findall(r"[a-z0-9-]+", " ".join(re.findall(r"(?m)^\| ([a-z0-9, -]+) \|", page))))
    check("docs/lab.md tells what each probe tries", names <= told, names - told)
    return names


def test_whole(names):
    before = leftovers()
    r = lab(*WEAKER, "--json")
    try:
        record = json.loads(r.stdout)
    except ValueError:
        check("the lab prints its record", False, r.stdout, r.stderr)
        return
    results = record["results"]
    wrong = [x for x in results if x["verdict"] not in ("held", "absent")]
    check("every wall holds", r.returncode == 0 and record["summary"]["all_held"] and not wrong, *wrong, r.stderr)
    check("the record has every probe once", sorted(x["probe"] for x in results) == sorted(names))
    check("the record says what ran", record["mode"] == ("root" if ROOT else "user") and record["kernel"] and
          record["runtime"] and len(record["plan_digest"]) == len(record["policy_digest"]) == 64, record)
    for x in results:
        if x["kind"] == "usable" or x["verdict"] == "absent":
            continue
        controls = x["control_before"]["result"] == x["control_after"]["result"] == "open"
        # As an ordinary user the other walls stand on the user namespace, which can then not be left out.
        off = x["kind"] != "wall" or (not ROOT and "userns" in x["walls"]) or x["without_wall"]["result"] == "open"
        if not (controls and off):
            check("%s is controlled outside and fails without %s" % (x["probe"], x["walls"]), False, x)
    absent = {x["probe"] for x in results if x["verdict"] == "absent"}
    allowed = {"x32-calls"} | (set() if ROOT else {"set-id-input", "file-capabilities", "make-device", "raw-socket"})
    check("nothing is skipped that this host could show", absent <= allowed, absent - allowed)
    for name, n in (("group", 0), ("process", 1), ("mount", 2), ("folder", 3)):
        check("no %s is left" % name, *nothing_new(before[n], n))
    check("the runs of the lab are not the user's runs", not glob.glob(top + "/state/doorward/runs/*"))


def test_can_fail():
    r = lab("--against", "env", "--only", "home", "--only", "mount", "--only", "abstract-socket", "--only", "semaphores")
    check("without a sandbox the lab says open, and ends with 1", r.returncode == 1 and r.stdout.count(" open") >= 3 and
          "1 held, 3 open" in r.stdout, r.stdout, r.stderr)
    r = lab("--against", "false", "--only", "home")
    check("a sandbox that does not start holds nothing", r.returncode == 1 and "broken" in r.stdout, r.stdout, r.stderr)
    r = lab("--against", "sleep 60; :", "--only", "home")
    check("a sandbox that hangs is ended and has failed", r.returncode == 1 and "did not end in time" in r.stdout,
          r.stdout, r.stderr)


def test_against():
    prefix = ("bwrap --unshare-all --die-with-parent --new-session --clearenv --ro-bind /usr /usr --symlink usr/bin /bin "
              "--symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp "
              "--ro-bind \"$LAB_PROBE/doorward-probe\" \"$LAB_PROBE/doorward-probe\"")
    r = lab("--against", prefix, "--only", "home", "--only", "loopback-tcp", "--only", "io-uring", "--json")
    found = {x["probe"]: x["verdict"] for x in json.loads(r.stdout)["results"]}
    check("another sandbox is judged by the same probes", found == {"home": "held", "loopback-tcp": "held",
          "io-uring": "open"}, found, r.stderr)


def test_task():
    folder = top + "/task"
    os.mkdir(folder)
    os.mkdir(folder + "/work")
    open(folder + "/work/file", "w").write("mine\n")
    limits = "" if ROOT else "    degrade: [memory]\n"
    step = "  %s:\n    run: [make]\n    inputs: {/lab-work: {overlay: ./work}}\n    workdir: /lab-work\n" + limits
    open(folder + "/task.yaml", "w").write("version: 1\ntask: demo\nsteps:\n" + step % "one" + step % "two")
    r = lab(folder + "/task.yaml", "--only", "home", "--only", "write-canary", "--only", "writable-places")
    check("a task's steps are rehearsed with their own inputs", r.returncode == 0 and "step one\n" in r.stdout and
          "step two\n" in r.stdout and r.stdout.count("3 held") == 2, r.stdout, r.stderr)
    check("its inputs are as they were", os.listdir(folder + "/work") == ["file"] and
          open(folder + "/work/file").read() == "mine\n")


def state_of_host(folder):
    with open("/proc/self/mountinfo") as f:
        mounts = [line for line in f if top in line or "/proc/sys" in line]
    return {name: (os.lstat(os.path.join(folder, name)).st_mode, read(os.path.join(folder, name)))
            for name in os.listdir(folder)}, mounts


def test_flipping_targets():
    """B03: names on the way to a target change between folder and link while sandboxes start."""
    victim, work, small = top + "/victim", top + "/flip", top + "/small"
    for folder in (victim, work, small):
        os.mkdir(folder)
    open(victim + "/canary", "w").write("untouched\n")
    open(small + "/file", "w").write("small\n")
    before = state_of_host(victim)
    script = ("while :; do for n in a b; do rmdir $n; ln -s $1 $n; rm $n; mkdir $n; "
              "ln -sfn /proc/sys/kernel out; rm -f out; mkdir -p out; rmdir out; done; done")
    flipper = subprocess.Popen(["sh", "-c", script, "sh", victim], cwd=work, stderr=subprocess.DEVNULL)
    ends = {}
    for _ in range(60):
        words = ["--overlay", work + ":/work"] + [w for t in ("a/x", "b/inner/x", "out/x") for w in ("--read", small + ":/work/" + t)]
        r = subprocess.run([DOORWARD, "run", *WEAKER, *words, "--", "cat", "/work/a/x/file"], env=environment,
                           capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        ends[r.returncode] = ends.get(r.returncode, 0) + 1
        if r.returncode not in (0, 125) or (r.returncode == 0 and r.stdout != "small\n"):
            check("a start works or is refused", False, r.returncode, r.stdout, r.stderr)
            break
    flipper.kill()
    flipper.wait()
    check("every start worked or was refused", set(ends) <= {0, 125}, ends)
    check("nothing was made or mounted through a link", state_of_host(victim) == before, before, state_of_host(victim))


def test_refusals():
    r = lab("--only", "no-such-probe\x1b[2J")
    check("an unknown probe is refused by name, harmlessly", r.returncode == 125 and "no-such-probe\\x1b[2J" in r.stderr,
          r.stderr)
    r = lab("--against", "env", top + "/task/task.yaml")
    check("a task and another sandbox do not go together", r.returncode == 125 and "--against" in r.stderr, r.stderr)
    r = lab(top + "/none.yaml", "--only", "home")
    check("a task that is not there is refused", r.returncode == 125 and "none.yaml" in r.stderr, r.stderr)


names = test_list()
test_whole(names)
test_can_fail()
test_against()
test_task()
test_flipping_targets()
test_refusals()
subprocess.run(["rm", "-rf", top])
finish()
