#!/usr/bin/python3
"""Workspaces as they are: repositories, linked worktrees and submodules in which git works inside, and what of them can leave."""
import hashlib
import json
import os
import shutil
import stat
import subprocess
import tempfile

from tap import check, finish

DOORWARD = os.environ["DOORWARD"]

# Root needs a file system that knows id-mapped mounts, which a container's own is not; /dev/shm is one, but below /dev
# nothing can stand inside, and a linked worktree's .git says whole paths.
own = subprocess.run(["stat", "-f", "-c", "%T", tempfile.gettempdir()], capture_output=True, check=True).stdout.strip()
top = tempfile.mkdtemp(prefix="dw-work-", dir="/dev/shm" if os.geteuid() == 0 and own == b"overlayfs" else None)
home = top + "/home"
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "XDG_STATE_HOME": top + "/state", "LC_ALL": "C",
       "XDG_RUNTIME_DIR": top + "/runtime", "XDG_CONFIG_HOME": top + "/config", "GIT_CONFIG_NOSYSTEM": "1"}
for folder in (home, top + "/state", top + "/runtime"):
    os.mkdir(folder, 0o755)


def dw(*words, **more):
    more = {"env": env, "stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 120, "cwd": top, **more}
    return subprocess.run([DOORWARD, *words], **more)


# An ordinary user without a delegated control group has no limit of memory: that has to be said.
DEGRADE = b"--degrade memory" in dw("run", "--", "true").stderr


def put(path, content="x"):
    path = os.path.join(top, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)
    return path


def policy(name, step, verb="run", *flags):
    """Runs a policy of one step."""
    if DEGRADE:
        step.setdefault("degrade", ["memory"])
    put(name, json.dumps({"version": 1, "task": "t", "steps": {"main": step}}))
    return dw(verb, *flags, name)


def git(where, *words):
    done = subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=n@example.test", "-c", "protocol.file.allow=always",
                           *words], env=env, cwd=top + "/" + where, capture_output=True, check=True)
    return done.stdout.decode().strip()


def bytes_of(folder):
    """Every file below a folder with its bytes, mode and time."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            with open(path, "rb") as f:
                found[path] = (st.st_mode, st.st_mtime_ns, f.read())
        for name in folders:
            found[os.path.join(at, name)] = os.lstat(os.path.join(at, name)).st_mode
    return found


def last_run():
    return json.loads(dw("ps", "-a", "--json").stdout)["runs"][0]["run"]


# -- three ways in which a repository lies: in the folder, in the main repository, in the one around it --
os.mkdir(top + "/library")
git("library", "init", "-q", "-b", "main")
put("library/l.c", "int l;\n")
git("library", "add", ".")
git("library", "commit", "-qm", "l")
os.mkdir(top + "/main")
git("main", "init", "-q", "-b", "main")
put("main/a.c", "int a;\n")
put("main/.git/hooks/pre-commit", "#!/bin/sh\nexit 0\n")
git("main", "add", ".")
git("main", "commit", "-qm", "a")
git("main", "submodule", "--quiet", "add", top + "/library", "lib")
git("main", "commit", "-qm", "lib")
git("main", "worktree", "add", "-q", "-b", "side", top + "/tree")
put("tree/.git", f"gitdir: {top}/main/.git/worktrees/tree\n")
before = bytes_of(top + "/main"), bytes_of(top + "/tree")
WORK = ("set -e; git status --porcelain; echo 'int n;' > new.c; git add new.c; git -c user.name=w -c user.email=w@example.test "
        "commit -qm inside; git status --porcelain; git log -1 --format=%s; git bundle create -q /out/b HEAD")
EXPORTS = {"bundle": {"type": "file", "path": "/out/b", "required": True}}


def works(name, where, inputs, workdir="/work"):
    """git works inside, nothing of it is written outside, and the commit can be fetched outside."""
    done = policy(where.replace("/", "-") + ".yaml", {"shell": WORK, "inputs": inputs, "exports": EXPORTS,
                                                      "workdir": workdir})
    check(f"{name}: status, add and commit work inside", done.returncode == 0 and done.stdout == b"inside\n", done)
    check(f"{name}: nothing is written outside", (bytes_of(top + "/main"), bytes_of(top + "/tree")) == before)
    if done.returncode == 0:
        artifacts = json.loads(dw("artifacts", last_run(), "--json").stdout)["artifacts"]
        shutil.copyfile(artifacts[0]["blob"], top + "/b.bundle")
        git(".", "clone", "-q", top + "/" + where, top + "/copy")
        git("copy", "fetch", "-q", top + "/b.bundle", "HEAD")
        check(f"{name}: the commit is of use outside", git("copy", "log", "-1", "--format=%s", "FETCH_HEAD") == "inside")
        shutil.rmtree(top + "/copy")


works("a repository", "main", {"/work": {"overlay": "main", "git": True}})
if not top.startswith("/dev/"):
    works("a linked worktree", "tree", {"/work": {"overlay": "tree", "git": True}})
put("tree/.git", "gitdir: ../main/.git/worktrees/tree\n")  # as newer versions of git can be told to write it
before = bytes_of(top + "/main"), bytes_of(top + "/tree")
works("a linked worktree with a relative path", "tree", {"/work/tree": {"overlay": "tree", "git": True}}, "/work/tree")
works("a submodule", "main/lib", {"/work/lib": {"overlay": "main/lib", "git": True}}, "/work/lib")
works("a submodule in its repository", "main", {"/work": {"overlay": "main"}})

# -- hooks and settings can be kept from the worker, and commits still work --
done = policy("kept.yaml", {"shell": "echo x > .git/hooks/pre-commit; echo x >> .git/config; " + WORK, "exports": EXPORTS,
                            "inputs": {"/work": {"overlay": "main"}, "/work/.git/hooks": {"read": "main/.git/hooks"},
                                       "/work/.git/config": {"read": "main/.git/config"}}})
check("hooks and config can stay read-only", done.returncode == 0 and done.stdout == b"inside\n"
      and b".git/hooks/pre-commit" in done.stderr and b".git/config" in done.stderr, done)

# -- without the key nothing opens, and it is said what does --
done = policy("closed.yaml", {"run": ["git", "status"], "inputs": {"/work": {"overlay": "tree"}}})
check("the main repository is not there unasked", done.returncode == 128 and b"not a git repository" in done.stderr, done)
done = policy("closed.yaml", {"run": ["git", "status"], "inputs": {"/work": {"overlay": "tree"}}}, "check")
check("check names the repository and the key", done.returncode == 0 and b"git-elsewhere" in done.stdout
      and (top + "/main/.git").encode() in done.stdout and b"git: true" in done.stdout, done)
done = policy("asked.yaml", {"run": ["git", "status"], "inputs": {"/work": {"overlay": "tree", "git": True}}}, "plan")
check("the plan shows what the key adds", f"/main/.git: folder {top}/main/.git, copy-on-write".encode() in done.stdout, done)
put("tree/.git", f"gitdir: {top}/main/.git/worktrees/tree\n")
done = policy("asked.yaml", {"run": ["git", "status"], "inputs": {"/work": {"overlay": "tree", "git": True}}}, "plan")
check("and where that says the whole path, that path",
      f"{top}/main/.git: folder {top}/main/.git, copy-on-write".encode() in done.stdout or
      (top.startswith("/dev/") and b"no input may stand at " + top.encode() in done.stderr), done)
put("tree/.git", "gitdir: ../main/.git/worktrees/tree\n")
done = policy("asked.yaml", {"shell": "git status --porcelain; ! touch /work/x", "workdir": "/work",
                             "inputs": {"/work": {"read": "tree", "git": True}}})
check("a read-only worktree has a read-only repository", done.returncode == 0 and done.stdout == b"", done)

# -- a .git that was prepared opens nothing --
os.mkdir(home + "/.ssh", 0o700)
os.mkdir(top + "/other")
git("other", "init", "-q")
for name, says, want in (
        ("keys", "gitdir: " + home + "/.ssh", b"neither a linked worktree's place nor a submodule's"),
        ("other-repository", "gitdir: " + top + "/other/.git", b"neither a linked worktree's place"),
        ("other-worktree", "gitdir: " + top + "/main/.git/worktrees/tree", b"does not name this folder as its worktree"),
        ("escape", "gitdir: \x1b]0;x\x07", b"does not say"),
        ("system", "gitdir: /etc", b"neither a linked worktree's place"),
        ("up", "gitdir: ../../../../../../../../x/worktrees/y", b"past /")):
    put("evil/.git", says + "\n")
    done = policy("evil.yaml", {"run": ["true"], "inputs": {"/work": {"overlay": "evil", "git": True}}})
    check(f"a .git that names {name} is refused", done.returncode == 125 and want in done.stderr and b"\x1b" not in done.stderr,
          done)
put("evil2/wt/.git", f"gitdir: {home}/.ssh/worktrees/wt\n")
put("home/.ssh/worktrees/wt/gitdir", f"{top}/evil2/wt/.git\n")
put("home/.ssh/worktrees/wt/commondir", "../..\n")
done = policy("evil.yaml", {"run": ["true"], "inputs": {"/work": {"overlay": "evil2/wt", "git": True}}})
check("a repository in a sensitive place is refused", done.returncode == 125 and b"the input is refused" in done.stderr
      and b"~/.ssh" in done.stderr, done)

# -- label: private is in the plan, in words and on record --
done = policy("private.yaml", {"run": ["true"], "inputs": {"/work": {"overlay": "other", "label": "private"}}}, "plan")
check("the plan says that an input is private", b"private: leaves through the exports below" in done.stdout, done)
policy("private.yaml", {"run": ["true"], "inputs": {"/work": {"overlay": "other", "label": "private"}}})
shown = json.loads(dw("show", last_run(), "--json").stdout)
check("and so does the run", shown["steps"][0]["plan"]["inputs"][0]["private"] is True, shown)


# -- digest: what an input held is on record, read beside the run --
def surveyed(inputs, script="true", **more):
    """The records of what the inputs of a run held, by their targets; the secrets; the run."""
    done = policy("survey.yaml", {"shell": script, "inputs": inputs, **more})
    story = json.loads(dw("show", last_run(), "--json").stdout)["steps"][0]
    return {row["target"]: row for row in story["inputs"]}, story["secrets"], done


def changed(row):
    return sorted((change["how"], change["path"]) for change in row["changed"])


head = git("main", "rev-parse", "HEAD")
rows, _, done = surveyed({"/work": {"overlay": "main", "digest": "git"}}, "echo inside > a.c")
row = rows["/work"]
check("a clean repository is its commit", row["complete"] and row["commit"] == head and row["ref"] == "refs/heads/main"
      and row["changes"] == 0 and len(row["digest"]) == 64, row, done)
again, _, _ = surveyed({"/work": {"overlay": "main", "digest": "git"}})
check("the same content has the same digest", again["/work"]["digest"] == row["digest"], again)
put("main/a.c", "int b;\n")  # the same size, perhaps in the same instant
put("main/new/file", "x")
os.unlink(top + "/main/.gitmodules")
rows, _, _ = surveyed({"/work": {"overlay": "main", "digest": "git"}})
dirty = rows["/work"]
check("what differs from the index is named", changed(dirty) == [("deleted", ".gitmodules"), ("modified", "a.c"), ("untracked", "new/")]
      and dirty["commit"] == head and dirty["digest"] != row["digest"], dirty)
check("as git itself sees it", git("main", "status", "--porcelain").split() == ["D", ".gitmodules", "M", "a.c", "??", "new/"])
os.utime(top + "/main/lib/l.c", (1, 1))
put("main/a.c", "int a;\n")
git("main", "checkout", "-q", ".gitmodules")
shutil.rmtree(top + "/main/new")
rows, _, _ = surveyed({"/work": {"overlay": "main", "digest": "git"}})
check("a file that was only touched did not change", rows["/work"]["digest"] == row["digest"], rows)
git("main", "pack-refs", "--all")
git("main", "update-index", "--index-version", "4")
rows, _, _ = surveyed({"/work": {"overlay": "main", "digest": "git"}, "/work/tree": {"overlay": "tree", "git": True, "digest": "git"},
                       "/main/lib": {"read": "main/lib", "git": True, "digest": "git"}})
check("packed references and short indexes are read", rows["/work"]["commit"] == head
      and rows["/work"]["digest"] == row["digest"], rows)
check("a linked worktree has its own commit", rows["/work/tree"]["complete"] and rows["/work/tree"]["ref"] == "refs/heads/side"
      and rows["/work/tree"]["commit"] == git("main", "rev-parse", "side"), rows)
check("a submodule has its own commit", rows["/main/lib"]["complete"]
      and rows["/main/lib"]["commit"] == git("main/lib", "rev-parse", "HEAD"), rows)
git("main", "update-index", "--split-index")
rows, _, _ = surveyed({"/work": {"overlay": "main", "digest": "git"}})
check("what is not read is said", not rows["/work"]["complete"] and "split index" in rows["/work"]["why"]
      and rows["/work"]["commit"] == head and "digest" not in rows["/work"], rows)
git("main", "update-index", "--no-split-index")
rows, _, done = surveyed({"/work": {"overlay": "main"}}, "sleep 0.3")
check("in a repository that is what happens unasked", rows["/work"]["kind"] == "git" and rows["/work"]["commit"] == head, rows)

# Nothing of the repository's own settings is run.
put("ran.sh", f"#!/bin/sh\ntouch {top}/ran\n")
os.chmod(top + "/ran.sh", 0o755)
for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "diff.external", "core.sshCommand", "core.editor", "core.pager"):
    git("main", "config", key, top + "/ran.sh")
put("main/.gitattributes", "* filter=x\n")
put("main/a.c", "int c;\n")
rows, _, _ = surveyed({"/work": {"overlay": "main", "digest": "git"}})
check("nothing that a repository names is run", not os.path.exists(top + "/ran") and ("modified", "a.c") in changed(rows["/work"]),
      rows)

# Hostile repositories: wrong bytes are told, and lead nowhere.
secret = put("outside/commit", "f" * 40 + "\n")
for name, files in {
        "head": {".git/HEAD": "ref: ../../outside/commit\n"},
        "dots": {".git/HEAD": "ref: refs/../../../outside/commit\n"},
        "index": {".git/HEAD": head + "\n", ".git/index": "DIRC\0\0\0\2\xff\xff\xff\xff" + "x" * 200},
        "escape": {".git/HEAD": "ref: refs/\x1b]0;x\x07\n"},
        "elsewhere": {".git": f"gitdir: {top}/outside\n"}}.items():
    for path, text in files.items():
        put(f"hostile-{name}/{path}", text)
    rows, _, done = surveyed({"/work": {"overlay": f"hostile-{name}", "digest": "git"}})
    row = rows["/work"]
    check(f"a hostile repository is told: {name}", done.returncode == 0 and not row["complete"] and row["why"]
          and row.get("commit") in (None, head) and b"\x1b" not in dw("show", last_run()).stdout, row, done)
os.mkdir(top + "/hostile-link")
os.mkdir(top + "/hostile-link/.git")
os.symlink(secret, top + "/hostile-link/.git/HEAD")
rows, _, _ = surveyed({"/work": {"overlay": "hostile-link", "digest": "git"}})
check("a link in a repository is not followed", not rows["/work"]["complete"] and "commit" not in rows["/work"], rows)


def listing(folder, hidden=()):
    """docs/journal.md: how the digest of `digest: full` is made."""
    out = b""

    def walk(path):
        nonlocal out
        for name in sorted(os.listdir(os.path.join(folder, path)), key=os.fsencode):
            inside = os.path.join(path, name)
            at = os.path.join(folder, inside)
            st = os.lstat(at)
            if inside in hidden:
                continue
            if stat.S_ISLNK(st.st_mode):
                kind, size, digest = "l", st.st_size, hashlib.sha256(os.fsencode(os.readlink(at))).hexdigest()
            elif stat.S_ISREG(st.st_mode):
                with open(at, "rb") as f:
                    kind, size, digest = "f", st.st_size, hashlib.sha256(f.read()).hexdigest()
            else:
                kind, size, digest = ("d", 0, "-") if stat.S_ISDIR(st.st_mode) else ("o", st.st_size, "-")
            out += f"{kind} {st.st_mode & 0o7777:04o} {size} {digest} ".encode() + os.fsencode(inside) + b"\0"
            if kind == "d":
                walk(inside)
    walk("")
    return hashlib.sha256(out).hexdigest()


put("plain/a", "one")
put("plain/b/c", "two")
put("plain/b.d", "three")
put("plain/.env", "x")
os.symlink("/nowhere", top + "/plain/b/link")
os.mkfifo(top + "/plain/fifo")
os.chmod(top + "/plain/a", 0o751)
rows, _, done = surveyed({"/work": {"overlay": "plain", "digest": "full", "exclude": [".env"]}, "/in": {"read": "plain", "digest": "none"}})
check("digest: full can be made again", rows["/work"]["digest"] == listing(top + "/plain", [".env"]) and rows["/work"]["complete"]
      and rows["/work"]["files"] == 4, rows, done)
check("digest: none counts", rows["/in"]["complete"] and (rows["/in"]["files"], rows["/in"]["bytes"]) == (5, 12)
      and "digest" not in rows["/in"], rows)

# -- scan: secrets are told by place and rule, never by value --
VALUE = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
put("leaky/src/deploy.sh", "#!/bin/sh\n\nTOKEN_OF_MINE=" + VALUE + "\n")
put("leaky/id_rsa", "x")
put("leaky/notes", "password: hunter2\nghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n")
put("leaky/\x1b[31m.p12", "x")
rows, secrets, done = surveyed({"/work": {"overlay": "leaky", "scan": "warn"}})
check("scan: warn tells where secrets are", done.returncode == 0 and sorted((s["path"], s["line"], s["rule"]) for s in secrets) ==
      [("\x1b[31m.p12", 0, "secret-file"), ("id_rsa", 0, "secret-file"), ("src/deploy.sh", 3, "github-token")], secrets, done)
page = dw("show", last_run()).stdout
check("and shows them without the value", b"src/deploy.sh, line 3: github-token" in page and VALUE.encode() not in page
      and b"\x1b" not in page, page)
with open(f"{top}/state/doorward/runs/{last_run()}/journal.jsonl", "rb") as f:
    check("which is not on record either", VALUE.encode() not in f.read())
rows, secrets, done = surveyed({"/work": {"overlay": "leaky", "scan": "refuse"}}, "echo started")
check("scan: refuse lets nothing start", done.returncode == 125 and b"started" not in done.stdout and b"look like secrets" in done.stderr
      and b"exclude" in done.stderr and VALUE.encode() not in done.stderr and b"\x1b" not in done.stderr, done)
rows, secrets, done = surveyed({"/work": {"overlay": "leaky", "scan": "refuse", "exclude": ["id_rsa", "*.p12", "deploy.sh"]}}, "ls")
check("and starts when they are left out", done.returncode == 0 and secrets == [], done, secrets)
rows, secrets, done = surveyed({"/in/deploy.sh": {"read": "leaky/src/deploy.sh", "scan": "refuse"}}, "echo started")
check("a file is scanned too", done.returncode == 125 and b"deploy.sh, line 3: github-token" in done.stderr, done)
if os.geteuid() != 0:
    os.chmod(put("closed/file", "x"), 0)
    rows, secrets, done = surveyed({"/work": {"overlay": "closed", "scan": "refuse"}}, "echo started")
    check("what cannot be scanned is refused", done.returncode == 125 and b"could not be read whole" in done.stderr, done)

# -- the cost is the worker's neighbour's: a large folder does not hold up the start or the end --
for i in range(100):
    os.makedirs(f"{top}/large/{i}")
    for k in range(100):
        os.symlink("x", f"{top}/large/{i}/{k}")
rows, _, done = surveyed({"/work": {"overlay": "large"}})
check("a step that is over before is not counted", done.returncode == 0 and not rows["/work"]["complete"]
      and "the step ended before" in rows["/work"]["why"], rows)
rows, _, done = surveyed({"/work": {"overlay": "large"}}, "sleep 2")
check("a longer one is", rows["/work"]["files"] == 10000, rows)

shutil.rmtree(top)
finish()
