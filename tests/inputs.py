#!/usr/bin/python3
"""What the worker sees of the host, and what the host sees of the worker: inputs of every kind, patterns beside git's
answers, links in the user's tree, the closed list of variables, steps that share nothing, policies of thousands of paths."""
import json
import os
import shutil
import stat
import subprocess
import tempfile
import time

from tap import check, finish

DOORWARD = os.environ["DOORWARD"]
ROOT = os.geteuid() == 0


# Root needs a file system that knows id-mapped mounts; /dev/shm is one.
top = tempfile.mkdtemp(prefix="dw-inputs-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
base, home = top + "/base", top + "/home"
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "XDG_STATE_HOME": top + "/state",
       "XDG_RUNTIME_DIR": top + "/runtime", "XDG_CONFIG_HOME": top + "/config"}
for folder in (base, home, top + "/state", top + "/runtime", top + "/outside"):
    os.mkdir(folder, 0o755)


def dw(*words, **more):
    more = {"env": env, "stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 120, "cwd": base, **more}
    return subprocess.run([DOORWARD, *words], **more)


# An ordinary user without a delegated control group has no limit of memory: that has to be said.
DEGRADE = b"--degrade memory" in dw("run", "--", "true").stderr
FLAGS = ["--degrade", "memory"] if DEGRADE else []


def put(path, content="x"):
    path = os.path.join(base, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)
    return path


def run(script, *flags, **more):
    return dw("run", *FLAGS, *flags, "--", "sh", "-c", script, **more)


def policy(steps, name="task.yaml"):
    """Runs a policy, given its steps as a dictionary."""
    for step in steps.values():
        if DEGRADE:
            step.setdefault("degrade", ["memory"])
    put(name, json.dumps({"version": 1, "task": "t", "steps": steps}))
    return dw("run", name)


def listing(folder):
    """Everything below a folder as find prints it, with sizes, modes and times."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            found[path] = (stat.filemode(st.st_mode), st.st_size, st.st_uid, st.st_mtime_ns,
                           os.readlink(path) if stat.S_ISLNK(st.st_mode) else None)
    return found


def lines(done):
    return sorted(done.stdout.decode().splitlines())


# -- read, overlay, copy --
put("work/a", "one")
put("work/sub/b", "two")
put("work/run.sh", "#!/bin/sh\necho ran\n")
os.chmod(base + "/work/run.sh", 0o755)
put("single", "three")
before = listing(top + "/base")
done = run("cat a sub/b && echo changed > a && echo new > c && rm -r sub && mv run.sh go.sh && ./go.sh && ls",
           "--overlay", "work:/work")
check("an overlay can be changed in every way", done.returncode == 0 and lines(done) ==
      ["a", "c", "go.sh", "onetworan"] or lines(done) == ["a", "c", "go.sh", "onetwo" + "ran"], done)
check("and the original was not", listing(base) == before)
done = run("cd /in && cat a && for t in 'echo x > a' 'rm a' 'mkdir d' 'chmod 777 a' 'mv a b' 'ln a l' 'touch new'; do "
           "sh -c \"$t\" 2>/dev/null && echo \"$t\"; done; true", "--read", "work:/in")
check("a read input cannot be changed in any way", done.returncode == 0 and done.stdout == b"one", done)
done = run("echo x >> /in/f && cat /in/f && echo y > /c/a && cat /c/a", "--copy", "single:/in/f", "--copy", "work:/c")
check("a copy can be changed", done.stdout == b"threex\ny\n", done)
check("and the originals are as they were", listing(base) == before)
done = run("cat /work/sub/f; echo z > /work/sub/f; cat /work/sub/f; cat /work/a", "--overlay", "work:/work", "--read",
           "single:/work/sub/f")
check("an input can stand in another one", done.stdout == b"threethreeone", done)
check("which leaves nothing in the original either", listing(base) == before)
done = run("pwd; cd /; ls -d home/agent work/x/y; test -w /work || echo closed", "--read", "work:/work/x/y")
check("/work is the work folder when something stands below it",
      done.stdout.startswith(b"/work\n") and b"work/x/y" in done.stdout, done)
done = run("pwd; cat b", "--overlay", "work:/work", "--workdir", "/work/sub")
check("a work folder below an input is entered", done.stdout == b"/work/sub\ntwo", done)

# -- links in the user's tree: dangling, leading out, in a circle, to folders --
put("links/real", "r")
put("links/.git/config", "c")
put("shared/hook", "h")
with open(top + "/outside/secret", "w", encoding="utf-8") as f:
    f.write("CANARY")
for name, to in ((".bashrc", "/nowhere/x"), (".env", top + "/outside/secret"), ("loop", "loop"),
                 (".git/hooks", "../../shared"), ("up", "../.."), ("root", "/")):
    os.symlink(to, base + "/links/" + name)
before = listing(top)
done = run("cat .env up/outside/secret root/" + top[1:] + "/outside/secret 2>/dev/null; ls -A; true", "--overlay", "links:/work")
check("links lead nowhere outside", b"CANARY" not in done.stdout and b".bashrc" in done.stdout, done)
done = policy({"main": {"shell": "ls -A; for n in .bashrc .env loop; do rm -f $n; echo x > $n && cat $n; done; echo y > .git/hooks",
                        "inputs": {"/work": {"overlay": "links", "exclude": [".bashrc", ".env", "loop", ".git/hooks"]}}}})
check("names that are links can be left out", done.returncode == 0 and
      lines(done) == [".git", "real", "root", "up", "x", "x", "x"], done)
check("and stay what they are", {k: v for k, v in listing(top).items() if k in before and "state" not in k
                                 and "task.yaml" not in k and k != base} ==
      {k: v for k, v in before.items() if "state" not in k and "task.yaml" not in k and k != base})
os.symlink(base + "/work", base + "/by-link")
done = run("cat /in/a", "--read", "by-link:/in")
check("a host path may be a link; the plan shows where it leads", done.stdout == b"one" and
      base.encode() + b"/work" in dw("plan", "--read", "by-link:/in", "--", "true").stdout, done)

# -- nothing appears in the user's tree, not even while a step runs --
put("clean/f")
before = listing(base + "/clean"), listing(home)
script = "mkdir -p .agent && echo x > .agent/settings.json && ln -s /etc/passwd .agent/link && echo started && sleep 20"
child = subprocess.Popen([DOORWARD, "run", *FLAGS, "--overlay", "clean:/work", "--read", "single:/work/in/f", "--", "sh",
                          "-c", script], env=env, cwd=base, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
started = child.stdout.readline()
during = listing(base + "/clean"), listing(home)
child.kill()
child.wait()
check("while a step runs the tree is as it was", started == b"started\n" and during == before, started, during)
time.sleep(0.5)
dw("ps")
check("and after the controller was killed", (listing(base + "/clean"), listing(home)) == before)

# -- patterns, beside git's own answers --
NAMES = ["a.o", "src/a.c", "src/a.o", "src/deep/b.c", "src/deep/.env", ".env", ".env.local", "build/x", "build/y/z",
         "docs/build/x", "k.pem", "keys/k.pem", "keys/readme", "Makefile", "x y", "src/build.c"]
for name in NAMES:
    put("tree/" + name)
CASES = [["*.o"], ["/build"], ["build/"], [".env*"], ["*.pem", "keys/"], ["src/**/*.c"], ["*", "!src", "!src/**"],
         ["**/deep"], ["/*", "!/src", "src/*", "!src/a.c"], ["x\\ y"], ["[a-m]*"], ["src/*/"], ["*.c", "!src/a.c"]]
have_git = shutil.which("git") is not None
subprocess.run(["git", "init", "-q", base + "/tree"], env=env, check=have_git)
for patterns in CASES:
    put("tree/.gitignore", "\n".join(patterns) + "\n")
    asked = subprocess.run(["git", "check-ignore", "--no-index", "-z", "--stdin"], cwd=base + "/tree", env=env, check=False,
                           input="\0".join(NAMES).encode(), capture_output=True).stdout.decode().split("\0")
    want = sorted(name for name in NAMES if name not in asked)
    done = policy({"main": {"shell": "find . -type f | sed 's,^\\./,,'", "inputs": {
        "/work": {"read": "tree", "exclude": [*patterns, ".git", ".gitignore"]}}}})
    check(f"exclude {patterns} hides what git ignores", done.returncode == 0 and lines(done) == want, want, done)
done = policy({"main": {"shell": "find . -type f", "inputs": {"/work": {"overlay": "tree", "only": ["/src/", "*.pem"]}}}})
check("only shows what matches and the way to it", lines(done) ==
      sorted("./" + n for n in NAMES if n.startswith("src/") or n.endswith(".pem")), done)
done = policy({"main": {"shell": "find . -type f", "inputs": {"/work": {"copy": "tree", "only": ["/src/"],
                                                                       "exclude": ["*.o", ".env"]}}}})
check("exclude beats only, in a copy too", lines(done) == ["./src/a.c", "./src/build.c", "./src/deep/b.c"], done)
done = policy({"main": {"shell": "cat .env; echo mine > .env && cat .env; rm .env; ls .env",
                        "inputs": {"/work": {"overlay": "tree", "exclude": [".env"]}}}})
check("a name that is left out is free for the worker", done.stdout == b"mine\n", done)
with open(base + "/tree/.env", encoding="utf-8") as f:
    check("and the original keeps its own", f.read() == "x")

# -- variables: a closed list --
CANARIES = ["SSH_AUTH_SOCK", "DOCKER_HOST", "KUBECONFIG", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_DIR", "AWS_PROFILE",
            "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_ID",
            "HTTP_PROXY", "LD_PRELOAD_X", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "ENV", "DISPLAY", "GPG_AGENT_INFO", "SECRET"]
loud = {**env, **{name: "tcp://127.0.0.1:1/CANARY" for name in CANARIES}, "TERM": "xterm"}
done = dw("run", *FLAGS, "--", "/usr/bin/env", "-0", env=loud)
seen = dict(item.split("=", 1) for item in done.stdout.decode().split("\0") if item)
check("the worker's variables are exactly six", seen == {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/doorward", "HOME": "/home/agent", "USER": "agent",
    "LANG": "C.UTF-8", "TERM": "dumb", "TMPDIR": "/tmp"}, seen)
done = dw("run", *FLAGS, "--env", "A=b=c", "--env", "TMPDIR=/out", "--pass-env", "SECRET", "--", "/usr/bin/env", "-0", env=loud)
more = dict(item.split("=", 1) for item in done.stdout.decode().split("\0") if item)
check("and what is named", more == {**seen, "A": "b=c", "TMPDIR": "/out", "SECRET": loud["SECRET"]}, more)

# -- steps --
done = policy({
    "one": {"shell": "echo one; echo x > /tmp/left; echo x > /home/agent/left; echo x > a; ls /out", "inputs": {"/work": {"overlay": "work"}}},
    "three": {"shell": "echo three; cat a; ls /tmp /home/agent", "after": "two", "inputs": {"/work": {"overlay": "work"}}},
    "two": {"shell": "echo two; ls /tmp /home/agent /work 2>/dev/null; true", "after": "one"},
})
check("steps run by `after`, and share nothing", done.returncode == 0 and done.stdout.replace(b"\n", b" ").split() ==
      b"one two /home/agent: /tmp: three one/home/agent: /tmp:".split(), done)
done = policy({"one": {"shell": "echo one; exit 7"}, "two": {"shell": "echo two"}})
check("a step that fails ends the run with its status", done.returncode == 7 and done.stdout == b"one\n", done)
done = policy({"main": {"shell": "id -u; id -un; grep CapEff /proc/self/status; echo $HOME $USER", "user": "root"}})
check("user: root is uid 0 without capabilities", done.stdout.split() ==
      [b"0", b"root", b"CapEff:", b"0000000000000000", b"/home/agent", b"root"], done)

# -- many paths, many files --
steps = {"main": {"shell": "ls /in/many | wc -l; cat /in/many/4999",
                  "inputs": {f"/in/many/{i}": {"read": put(f"many/{i}", str(i))} for i in range(5000)}}}
start = time.monotonic()
done = policy(steps)
check("5,000 paths, each an input", done.returncode == 0 and done.stdout == b"5000\n4999", done)
check("start in seconds", time.monotonic() - start < 30, time.monotonic() - start)
for i in range(20000):
    if i % 200 == 0:
        os.makedirs(f"{base}/large/data/{i // 200}", exist_ok=True)
    with open(f"{base}/large/data/{i // 200}/{i}.bin", "wb"):
        pass
put("large/keep")
os.symlink(".", base + "/large/self")


def took(what):
    best = 99.0
    for _ in range(3):
        begin = time.monotonic()
        answer = policy({"main": {"shell": "ls", "inputs": {"/work": what}}})
        best = min(best, time.monotonic() - begin)
        if answer.returncode != 0:
            check("a large folder is an input", False, answer)
    return best, answer


small, _ = took({"overlay": "work"})
plain, _ = took({"overlay": "large"})
check("20,000 files cost nothing at the start", plain - small < 0.1, small, plain)
ruled, answer = took({"overlay": "large", "exclude": ["data/**", *(f"**/x{i}" for i in range(9))]})
check("a rule over them hides them", sorted(answer.stdout.split()) == [b"data", b"keep", b"self"], answer)
check("and ten rules cost at most 100 ms", ruled - small < 0.1, small, ruled)
done = dw("run", *FLAGS, "--env", "BIG=" + "x" * 120000, "--", "sh", "-c", "echo ${#BIG}")
check("one large variable passes", done.stdout == b"120000\n", done)

shutil.rmtree(top)
finish()
