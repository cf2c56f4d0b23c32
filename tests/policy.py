#!/usr/bin/python3
"""Bad input: every malformed policy, path and flag gets one clear line that names the place and the remedy, exit 125, and
nothing is started or left behind. And large policies, and the schema."""
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time

from tap import check, finish

DOORWARD = os.environ["DOORWARD"]


top = tempfile.mkdtemp(prefix="dw-policy-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
base = top + "/base"
home = top + "/home"
state = top + "/state"
for folder in (base, home, home + "/.ssh", state, top + "/run", base + "/sub"):
    os.makedirs(folder, 0o700)
environment = {"PATH": os.environ["PATH"], "HOME": home, "XDG_STATE_HOME": state, "XDG_RUNTIME_DIR": top + "/run",
               "XDG_CONFIG_HOME": top + "/config"}


def doorward(*words, **options):
    return subprocess.run([DOORWARD, *words], env=environment, cwd=base, capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=60, **options)


def runs():
    folder = state + "/doorward/runs"
    return os.listdir(folder) if os.path.isdir(folder) else []


def refused(name, words, *wants):
    """One line on standard error with all of `wants`, nothing on standard output, exit 125, no run on record."""
    answer = doorward(*words)
    error = answer.stderr.decode("utf-8", "backslashreplace")
    lines = error.splitlines()
    good = (answer.returncode == 125 and answer.stdout == b"" and len(lines) == 1 and lines[0].startswith("doorward: ")
            and all(want in error for want in wants) and lines[0].isprintable() and runs() == [])
    check(name, good, f"exit {answer.returncode}, out {answer.stdout!r}", error, f"runs {runs()}", f"wanted {wants}")


def write(name, content):
    with open(os.path.join(base, name), "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    return name


HEAD = "version: 1\ntask: t\nsteps:\n  main:\n    run: [\"/bin/sh\", \"-c\", \"echo started\"]\n"

write("a.txt", "x")
write(".env", "x")
os.symlink("nowhere", base + "/dangling")
os.symlink("loop", base + "/loop")
os.symlink(home + "/.ssh", base + "/keys")
os.symlink("/", base + "/sub/out")
os.mkfifo(base + "/fifo")
with open(os.path.join(base.encode(), b"caf\xe9"), "wb"):
    pass
os.symlink(b"caf\xe9", base.encode() + b"/latin")

FILES = [
    # name, content, what the message must say
    ("empty", "", "the policy is empty"),
    ("blank", "\n\n  \n", "the policy is empty"),
    ("comment", "# nothing\n", "the policy is empty"),
    ("null", "null\n", "the policy is empty"),
    ("list", "- a\n", ":1:1: found a list"),
    ("text", "just text\n", ":1:1: found the text"),
    ("binary", bytes(range(256)), "NUL"),
    ("latin1", "version: 1\ntask: caf\xe9\n".encode("latin-1"), ":2:10: byte 20 is not UTF-8"),
    ("utf16", "version: 1\n".encode("utf-16"), "not UTF-8"),
    ("nul", "version: 1\0\n", ":1:11: byte 10 is NUL"),
    ("huge", HEAD + "#" * (1 << 20), "1048576"),
    ("deep", "[" * 100, "nested deeper than 64"),
    ("open", "version: 1\nsteps: {\n", "not YAML"),
    ("tabs", "version: 1\n\ttask: t\n", ":2:1: not YAML"),
    ("alias", HEAD + "a: &x 1\nb: *x\n", "anchors"),
    ("bomb", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "anchors"),
    ("merge", HEAD + "    <<: {user: root}\n", "merge keys"),
    ("tag", "version: !!int 1\n", "tags"),
    ("python", "version: !!python/object/apply:os.system [id]\n", "tags"),
    ("twice", HEAD + "task: u\n", ":6:1: task: this key stands twice, first in line 2"),
    ("documents", HEAD + "---\n" + HEAD, ":6:1: a second document"),
    ("unknown", HEAD + "    limits: {memroy: 1GiB}\n", ":6:14: steps.main.limits.memroy: unknown key; did you mean \"memory\"?"),
    ("escape", "\"\\e]0;x\\a\": 1\n", "\\x1b]0;x\\x07"),
    ("door", HEAD + "    network: [{allow: GET https://example.test/**}]\n", "the door `network` is not built yet"),
    ("credentials", HEAD + "credentials: {}\n", "the door `credentials` is not built yet"),
    ("boundary", HEAD + "    boundary: microvm\n", "microvm is not built yet"),
    ("export-type", HEAD + "    exports: {p: {type: patch, path: /out/p}}\n", "patch is not built yet"),
    ("version", "version: 2\n", "expected the number 1"),
    ("no-version", "task: t\nsteps: {a: {run: [x]}}\n", "the key `version` is missing"),
    ("no-steps", "version: 1\ntask: t\n", "the key `steps` is missing"),
    ("cycle", "version: 1\ntask: t\nsteps:\n  a: {run: [x], after: b}\n  b: {run: [x], after: a}\n", "wait for each other"),
    ("no-step", HEAD + "    after: mian\n", "there is no step \"mian\"; did you mean \"main\"?"),
    ("type", HEAD + "    limits: {memory: true}\n", "found true, expected a size"),
    ("absurd", HEAD + "    limits: {memory: 99999999999999999999999TiB}\n", "expected something from 1MiB to 1024TiB"),
    ("zero", HEAD + "    limits: {processes: 0}\n", "expected something from 1 to"),
    ("unit", HEAD + "    limits: {wall: 20}\n", "expected a time such as 90s"),
    ("value", HEAD + "    inputs:\n      /work:\n", "the key has no value"),
    ("only", HEAD + "    inputs: {/work: {overlay: ., only: []}}\n", "then nothing would be there"),
    ("missing", HEAD + "    inputs: {/in/x: {read: not-here}}\n", "steps.main.inputs[\"/in/x\"].read", "not-here", "No such file"),
    ("newline", HEAD + "    inputs: {/in/x: {read: \"a\\nb\"}}\n", "a\\x0ab", "No such file"),
    ("dangling", HEAD + "    inputs: {/in/x: {read: dangling}}\n", "dangling", "No such file"),
    ("loop", HEAD + "    inputs: {/in/x: {read: loop}}\n", "loop", "symbolic links"),
    ("below-file", HEAD + "    inputs: {/in/x: {read: a.txt/b}}\n", "Not a directory"),
    ("long-name", HEAD + "    inputs: {/in/x: {read: " + "n" * 300 + "}}\n", "File name too long"),
    ("long-path", HEAD + "    inputs: {/in/x: {read: " + "n/" * 2500 + "}}\n", "more than 4095"),
    ("fifo", HEAD + "    inputs: {/in/x: {read: fifo}}\n", "neither a file nor a folder"),
    ("device", HEAD + "    inputs: {/in/x: {read: /dev/null}}\n", "neither a file nor a folder"),
    ("overlay-file", HEAD + "    inputs: {/in/x: {overlay: a.txt}}\n", "an overlay needs a folder"),
    ("latin-name", HEAD + "    inputs: {/in/x: {read: latin}}\n", "source is not UTF-8 at byte", "rename it"),
    ("root", HEAD + "    inputs: {/in/x: {read: /}}\n", "is everything on this host", "sensitive: true"),
    ("home", HEAD + "    inputs: {/in/x: {overlay: ../home}}\n", "is a home folder", "sensitive: true"),
    ("keys", HEAD + "    inputs: {/in/x: {read: keys}}\n", "is ~/.ssh", "sensitive: true"),
    ("state", HEAD + "    inputs: {/in/x: {read: ../state}}\n", "doorward's own records", "sensitive: true"),
    ("target", HEAD + "    inputs: {/usr/local/x: {read: .}}\n", "no input may stand at /usr/local/x"),
    ("target-up", HEAD + "    inputs: {/in/../usr: {read: .}}\n", "not an absolute, normalised path"),
    ("below-read", HEAD + "    inputs: {/w: {read: .}, /w/new: {read: a.txt}}\n", "no new to stand on"),
    ("through-link", HEAD + "    inputs: {/w: {overlay: .}, /w/sub/out/tmp: {read: sub}}\n", "a link leads away"),
    ("workdir", HEAD + "    workdir: /nowhere\n", "no folder stands at /nowhere"),
    ("workdir-up", HEAD + "    workdir: ..\n", "not an absolute path inside"),
    ("workdir-link", HEAD + "    inputs: {/w: {overlay: .}}\n    workdir: /w/sub/out\n", "links lead from /w/sub/out out of"),
    ("workdir-missing", HEAD + "    inputs: {/w: {overlay: .}}\n    workdir: /w/none\n", "No such file"),
    ("workdir-long", HEAD + "    workdir: /" + "w" * 5000 + "\n", "at most 4095 bytes"),
    ("export-place", HEAD + "    exports: {x: {type: file, path: /usr/x}}\n", "the worker cannot write at /usr/x"),
    ("big-variable", HEAD + "    env: {BIG: " + "x" * 200000 + "}\n", "the variable BIG has 200004 bytes"),
    ("unset", HEAD + "    pass-env: [NOT_SET_ANYWHERE]\n", "NOT_SET_ANYWHERE is not set"),
]
for name, content, *wants in FILES:
    file = write(name + ".yaml", content)
    for verb in ("check", "plan", "run"):
        refused(f"{verb} refuses the policy {name}", [verb, file], *wants)
    os.unlink(os.path.join(base, file))

good = write("good.yaml", HEAD)
refused("a policy that is not there is named", ["check", "gone.yaml"], "gone.yaml")
refused("a folder is no policy", ["check", "."], "folder")
refused("a loop is no policy", ["check", "loop"], "loop")
refused("a dangling link is no policy", ["check", "dangling"], "dangling")
refused("a step that is not there is named", ["plan", good, "mian"], "did you mean \"main\"?")
refused("a policy and flags exclude each other", ["plan", "--memory", "1GiB", good], "--memory")
refused("a policy and a command exclude each other", ["plan", good, "--", "true"], "exclude each other")
if os.geteuid() != 0:
    os.chmod(os.path.join(base, good), 0)
    refused("a policy that cannot be read is named", ["check", good], "Permission denied")
    os.chmod(os.path.join(base, good), 0o600)

FLAGS = [
    (["--memory", "2G"], "--memory: found the text \"2G\""),
    (["--memory", "-1"], "--memory: found the number -1"),
    (["--memory", "1"], "--memory: found the number 1, expected something from 1MiB"),
    (["--cpus", "0"], "--cpus: found the number 0"),
    (["--cpus", "many"], "--cpus: found the text \"many\""),
    (["--processes", "1e9"], "--processes: found the number 1e9"),
    (["--timeout", "soon"], "--timeout: found the text \"soon\""),
    (["--disk", "99999999999999999999TB"], "--disk: found the text"),
    (["--output", "x"], "--output: found the text"),
    (["--overlay", "."], "--overlay: found \".\", expected FROM:TO"),
    (["--overlay", "gone:/work"], "--overlay: ", "gone", "No such file"),
    (["--overlay", "loop:/work"], "--overlay: ", "symbolic links"),
    (["--overlay", ".:/usr"], "--overlay: no input may stand at /usr"),
    (["--overlay", ".:/w", "--overlay", "sub:/w"], "--overlay: /w is given twice"),
    (["--read", home + ":/in/home"], "--read: the input is refused", "--sensitive"),
    (["--read", "a.txt"], "--read: \"a.txt\" is not an absolute"),
    (["--copy", "a.txt:rel"], "--copy: \"rel\" is not an absolute"),
    (["--env", "NAME"], "--env: found \"NAME\", expected NAME=VALUE"),
    (["--env", "A B=c"], "--env: not a variable's name"),
    (["--pass-env", "NOT_SET_ANYWHERE"], "--pass-env: NOT_SET_ANYWHERE is not set"),
    (["--export", "report"], "--export: found \"report\", expected NAME=PATH"),
    (["--export", "r=/etc/x"], "--export: the worker cannot write at /etc/x"),
    (["--degrade", "everything"], "--degrade: \"everything\" is no wall or limit"),
    (["--degrade", "mounts"], "--degrade: \"mounts\" cannot be given up"),
    (["--workdir", "~"], "--workdir: \"~\" is not an absolute path"),
    (["--workdir", "/tmp/victim"], "--workdir: no folder stands at /tmp/victim"),
    (["--sensitive"], "--sensitive: there is no input"),
    (["--memroy", "1GiB"], "did you mean --memory?"),
]
for flags, *wants in FLAGS:
    for verb in ("plan", "run"):
        refused(f"{verb} refuses {' '.join(flags)[:60]}", [verb, *flags, "--", "/bin/echo", "started"], *wants)
refused("an empty program is refused", ["run", "--", ""], "the program's name is empty")
refused("no program is refused", ["run"], "there is no command")
refused("bytes that are not UTF-8 are refused", ["run", "--", b"echo", b"\xff"], "byte 0 is not UTF-8")

# No descriptors left: an error of doorward's own, and nothing runs. The hard limit cannot be raised again by doorward.
# With sanitizers the program is dynamic, and it is the loader that finds none.
answer = doorward("run", "--", "/bin/echo", "started",
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)))
check("without descriptors nothing starts", b"started" not in answer.stdout and
      answer.returncode == (127 if os.environ.get("DOORWARD_SANITIZED") else 125), answer)

# A good policy passes, in words and as JSON, and leaves nothing.
answer = doorward("check", good)
check("a good policy passes", answer.returncode == 0 and b"valid, 1 step" in answer.stdout, answer)
answer = doorward("plan", good, "--json")
plan = json.loads(answer.stdout)
check("the plan is JSON with its digest", len(plan["steps"][0]["digest"]) == 64
      and plan["steps"][0]["plan"]["argv"][0] == "/bin/sh", answer)
digests = {json.loads(doorward("plan", good, "--json").stdout)["steps"][0]["digest"] for _ in range(3)}
check("the same policy has the same plan digest", digests == {plan["steps"][0]["digest"]}, digests)
check("check and plan leave nothing behind", runs() == [])

# Findings, accepted and not.
risky = write("risky.yaml", HEAD + "    user: root\n    inputs: {/work: {overlay: .}}\naccept: {root-user: it must be}\n")
answer = doorward("check", risky, "--json")
found = {f["id"]: f for f in json.loads(answer.stdout)["findings"]}
check("findings have ids and reasons", answer.returncode == 0 and found["root-user"]["accepted"] == "it must be"
      and "accepted" not in found["secret-looking-input"], found)
check("--strict asks for acceptance", doorward("check", "--strict", risky).returncode == 1
      and doorward("check", "--strict", good).returncode == 0)

# Variables that carry authority or load code never pass unasked (inputs.py); who lists one is told.
CARRIERS = ["SSH_AUTH_SOCK", "DOCKER_HOST", "KUBECONFIG", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_DIR", "GIT_SSH_COMMAND", "AWS_PROFILE",
            "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY",
            "WAYLAND_DISPLAY", "XAUTHORITY", "GPG_AGENT_INFO", "GITHUB_TOKEN", "NPM_CONFIG_USERCONFIG", "LD_PRELOAD", "PYTHONPATH",
            "NODE_OPTIONS", "BASH_ENV", "KRB5CCNAME", "CONTAINER_HOST"]
carried = write("carried.yaml", HEAD + f"    pass-env: [{', '.join(CARRIERS)}]\n    env: {{CLOUDSDK_CONFIG: /x}}\n")
usual = dict(environment)
environment.update({name: "/nowhere" for name in CARRIERS if name not in environment})
found = json.loads(doorward("check", carried, "--json").stdout)["findings"]
told = [f["message"].split()[0] for f in found if f["id"] in ("authority-variable", "secret-variable")]
check("check tells of each listed variable that carries authority", sorted(set(told)) == sorted([*CARRIERS, "CLOUDSDK_CONFIG"]), told)
environment.clear()
environment.update(usual)

# The size of a policy is no reason to be slow.
os.mkdir(base + "/many")
lines = [HEAD + "    inputs:\n"]
for i in range(5000):
    write(f"many/{i}", "x")
    lines.append(f"      /in/many/{i}: {{read: many/{i}}}\n")
many = write("many.yaml", "".join(lines))
start = time.monotonic()
answer = doorward("plan", many)
took = time.monotonic() - start
check("5,000 paths make a plan", answer.returncode == 0 and answer.stdout.count(b"/in/many/") == 5000, answer.stderr)
check("and quickly", took < 3, f"{took} s")
pathological = write("slow.yaml", "a: " + "[" * 60 + "{" * 3 + "a: " * 300000)
start = time.monotonic()
answer = doorward("check", pathological)
took = time.monotonic() - start
check("a hostile file is refused quickly", answer.returncode == 125 and took < 5, took, answer.stderr[:500])

schema = json.loads(doorward("schema").stdout)
check("the schema describes the format", schema["$schema"].endswith("2020-12/schema")
      and {"version", "task", "steps"} <= set(schema["required"]), schema)

# The reference tells of every key, and its example is accepted.
with open(os.environ["DOORWARD_SOURCE"] + "/docs/policy.md", encoding="utf-8") as f:
    reference = f.read()


def keys(node):
    """All fixed keys and words of a schema."""
    if isinstance(node, dict):
        yield from (key for key in node.get("properties", ()))
        yield from node.get("enum", ())
        for value in node.values():
            yield from keys(value)


missing = [key for key in sorted(set(keys(schema))) if f"`{key}`" not in reference]
check("docs/policy.md tells of every key and word", missing == [], missing)
examples = re.findall(r"^```yaml\n(.*?)^```", reference, re.M | re.S)
answers = [doorward("check", write("example.yaml", text)) for text in examples]
check("the examples in docs/policy.md are accepted", answers and all(a.returncode == 0 for a in answers), answers)

shutil.rmtree(top)
finish()
