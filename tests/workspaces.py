#!/usr/bin/python3
"""Workspaces as they are: repositories, linked worktrees and submodules in which git works inside, and what of them can leave."""
import json
import os
import shutil
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
        shutil.copy(artifacts[0]["blob"], top + "/b.bundle")
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

shutil.rmtree(top)
finish()
