#!/usr/bin/python3
"""Hosts that are not at hand (field cases A37, A38, A39): what `doorward doctor` and a failing start say on them.

A host is made from this one: calls of the kernel that fail as they do there (test-deny), and files that show what that host
shows, bound over ours in a mount namespace (bubblewrap). Some are real: doorward inside bubblewrap, inside doorward, in a
user namespace that allows no further ones. On each the command must not run, and the words must name what to type.
usage: hosts.py TEST-DENY"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from tap import check, finish

DENY = os.path.abspath(sys.argv[1])
ROOT = os.geteuid() == 0
SANITIZED = os.environ.get("DOORWARD_SANITIZED")  # its run-time needs some of these calls
NOBODY = 65534
top = tempfile.mkdtemp(prefix="dw-hosts-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
os.chmod(top, 0o755)


def copy_parts():
    """Programs where everybody may go, in one folder."""
    own = os.path.dirname(os.environ["DOORWARD"])
    libexec = own if os.path.exists(own + "/doorward-launch") else own + "/../libexec/doorward"
    os.mkdir(top + "/bin", 0o755)
    for name, folder in (("doorward", own), ("doorward-main", libexec), ("doorward-launch", libexec), ("doorward-init", libexec)):
        if os.path.exists(os.path.join(folder, name)):
            shutil.copy(os.path.join(folder, name), top + "/bin")
    shutil.copy(DENY, top + "/bin/deny")


copy_parts()
for folder in ("user", "root", "fake"):
    os.mkdir(f"{top}/{folder}", 0o755)
if ROOT:
    os.chown(top + "/user", NOBODY, NOBODY)
USER, SUPERUSER = "user", "root"
ME = SUPERUSER if ROOT else USER


def environment(who):
    home = f"{top}/{who}"
    return {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": home, "XDG_STATE_HOME": home + "/state",
            "XDG_RUNTIME_DIR": home + "/runtime", "XDG_CONFIG_HOME": home + "/config"}


for who in (USER, SUPERUSER):
    os.makedirs(f"{top}/{who}/runtime", 0o700)
    if ROOT and who == USER:
        os.chown(f"{top}/{who}/runtime", NOBODY, NOBODY)


def scene(files):
    """The words that put a program before faked files: a root that has all of the host's but what says \"container\"."""
    words = ["bwrap"]
    for name in sorted(os.listdir("/")):
        if name not in (".dockerenv", "proc", "old_root") and not os.path.islink("/" + name):
            words += ["--dev-bind", "/" + name, "/" + name]
        elif os.path.islink("/" + name):
            words += ["--symlink", os.readlink("/" + name), "/" + name]
    words += ["--dev-bind", "/proc", "/proc"]
    covered = set()
    for n, (path, text) in enumerate(files.items()):
        fake = f"{top}/fake/{n}"
        with open(fake, "w") as f:
            f.write(text)
        os.chmod(fake, 0o644)
        folder = os.path.dirname(path)
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        if not os.path.exists(path) and folder != "/" and folder not in covered:
            words += ["--tmpfs", folder]
            covered.add(folder)
        words += ["--ro-bind", fake, path]
    return words


def dw(*args, who=ME, deny=(), files=None, before=(), **more):
    """doorward on an emulated host; `files` None: this host's own."""
    words = [] if files is None else scene(files)
    if ROOT and who == USER:
        words += ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--inh-caps=-all"]
    words += before
    if deny:
        words += [top + "/bin/deny", *deny, "--"]
    more = {"env": environment(who), "stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 60, "cwd": top, "text": True, **more}
    return subprocess.run([*words, top + "/bin/doorward", *args], **more)


DEGRADE = {who: ["--degrade", "memory"] if "--degrade memory" in dw("run", "--", "true", who=who).stderr else []
           for who in {ME, USER}}
DEGRADE.setdefault(SUPERUSER, [])


def start(who=ME, **more):
    return dw("run", *DEGRADE[who], "--", "/bin/echo", "ran", who=who, **more)


def doctor(**more):
    """(exit status, {row: ...}, text of all remedies)."""
    done = dw("doctor", "--json", **more)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return None, {}, done
    return done.returncode, {r["name"]: r for r in answer["rows"]}, answer


# name, who, calls that fail, files that are seen, the row that must be missing, what both must say
NO_USERNS = ["clone3:EPERM"]
APPARMOR = {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}
TYPED = ("doorward doctor --apparmor-profile | sudo tee /etc/apparmor.d/doorward-launch && sudo apparmor_parser -r "
         "/etc/apparmor.d/doorward-launch")
SYSCTL = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
HOSTS = [
    ("Ubuntu 24.04, user namespaces are refused", USER, NO_USERNS, APPARMOR, "userns", [TYPED, SYSCTL]),
    ("Ubuntu 24.04, they are made without rights", USER, ["fsopen:EPERM"], APPARMOR, "mounts", [TYPED, SYSCTL]),
    ("Ubuntu 24.04, answering EACCES", USER, ["clone3:EACCES"], APPARMOR, "userns", [TYPED, SYSCTL]),
    ("Ubuntu 24.04, no network namespace", USER, ["unshare:EPERM:0:0x40000000=0x40000000"], APPARMOR, "net", [TYPED, SYSCTL]),
    ("an old Debian", USER, NO_USERNS, {"/proc/sys/kernel/unprivileged_userns_clone": "0\n"}, "userns",
     ["sudo sysctl -w kernel.unprivileged_userns_clone=1"]),
    ("no user namespaces at all", SUPERUSER, ["clone3:ENOSPC"], {"/proc/sys/user/max_user_namespaces": "0\n"}, "userns",
     ["sudo sysctl -w user.max_user_namespaces=15000"]),
    ("no network namespaces", SUPERUSER, ["unshare:ENOSPC:0:0x40000000=0x40000000"], {"/proc/sys/user/max_net_namespaces": "0\n"},
     "net", ["sudo sysctl -w user.max_net_namespaces=15000"]),
    ("namespaces used up", SUPERUSER, ["clone3:ENOSPC"], {}, "userns", ["used up", "user.max_user_namespaces"]),
    ("processes used up", ME, ["clone3:EAGAIN"], {}, "userns", ["ulimit -u"]),
    ("Docker with its own filter", USER, ["clone3:ENOSYS", "unshare:EPERM"], {"/.dockerenv": ""}, "userns",
     ["docker run --security-opt systempaths=unconfined --security-opt seccomp=unconfined"]),
    ("Docker with covered parts of /proc", USER, ["fsopen:EPERM"], {"/.dockerenv": ""}, "mounts", ["docker run --security-opt"]),
    ("WSL 1", SUPERUSER, ["clone3:ENOSYS"], {"/proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft\n"}, "userns",
     ["wsl --set-version"]),
    ("WSL 2 with an old kernel", SUPERUSER, ["mount_setattr:ENOSYS"],
     {"/proc/sys/kernel/osrelease": "5.10.16.3-microsoft-standard-WSL2\n"}, "mounts", ["wsl --update"]),
    ("a kernel before mount_setattr", SUPERUSER, ["mount_setattr:ENOSYS"], {}, "mounts", ["Linux 5.14 or newer"]),
    ("Landlock not built in", ME, ["landlock_create_ruleset:ENOSYS"], {}, "landlock",
     ["CONFIG_SECURITY_LANDLOCK", "--degrade landlock"]),
    ("Landlock not switched on", ME, ["landlock_create_ruleset:EOPNOTSUPP"], {}, "landlock",
     ["lsm=landlock", "sudo update-grub", "--degrade landlock"]),
    ("no seccomp notifications", ME, ["seccomp:ENOSYS"], {}, "seccomp", ["CONFIG_SECCOMP_FILTER", "--degrade seccomp"]),
    ("SELinux", SUPERUSER, ["fsopen:EACCES"], {"/sys/fs/selinux/enforce": "1\n"}, "mounts", ["ausearch"]),
]


def emulated():
    for name, who, deny, files, row, words in HOSTS:
        if (who == SUPERUSER and not ROOT) or (files and not ROOT) or (SANITIZED and who != ME):
            continue  # files that show a host are bound by root; then root also becomes the user
        done = start(who=who, deny=deny, files=files if ROOT else None)
        said = re.sub(r"\s+", " ", done.stderr)
        check(f"{name}: nothing runs, and the start says what to type",
              done.returncode == 125 and not done.stdout and all(w in said for w in words), done)
        check(f"{name}: it is one line", len(done.stderr.strip().splitlines()) == 1 and "..." not in done.stderr[-8:], done)
        status, rows, answer = doctor(who=who, deny=deny, files=files if ROOT else None)
        found = rows.get(row, {})
        whole = f"{found.get('why')} {found.get('remedy')}"
        check(f"{name}: the doctor finds {row} missing, in the same words", status == 1 and found.get("state") == "missing" and
              all(w in whole for w in words), answer)


def attributes():
    """An ordinary user before Linux 6.6: an overlay would mount and then fail within."""
    os.mkdir(top + "/input", 0o755)
    deny = ["getxattr:EOPNOTSUPP"]
    done = dw("run", *DEGRADE[USER], "--overlay", top + "/input:/work", "--", "/bin/echo", "ran", who=USER, deny=deny)
    check("no user attributes: the overlay is refused, with another way", done.returncode == 125 and not done.stdout and
          all(w in done.stderr for w in ("door overlay at /work", "Linux 6.6", "say copy in place of overlay")), done)
    for way in ("--copy", "--read"):
        done = dw("run", *DEGRADE[USER], way, top + "/input:/work", "--", "/bin/echo", "ran", who=USER, deny=deny)
        check(f"and {way} works there", done.stdout == "ran\n", done)
    _, rows, answer = doctor(who=USER, deny=deny)
    row = rows.get("overlay", {})
    check("the doctor says it in the same words", row.get("state") == "missing" and "say copy in place of overlay" in row["remedy"], answer)


def stranger():
    """Who reads only the failed start on Ubuntu 24.04 types what it says; here the two programs that Ubuntu has are stand-ins
    that show what reached them."""
    if not ROOT or SANITIZED:
        return
    done = start(who=USER, deny=NO_USERNS, files=APPARMOR)
    typed = re.search(r"type: (doorward doctor .*?)   or", done.stderr)
    check("the failed start has a command to paste", bool(typed), done)
    tools = top + "/tools"
    os.mkdir(tools)
    written = top + "/written"
    for name, text in (("sudo", 'exec "$@"'), ("tee", f'exec /usr/bin/tee "{written}"'), ("apparmor_parser", f'echo "$@" >>"{written}.loaded"'),
                       ("doorward", f'exec {top}/bin/doorward "$@"')):
        with open(f"{tools}/{name}", "w") as f:
            f.write("#!/bin/sh\n" + text + "\n")
        os.chmod(f"{tools}/{name}", 0o755)
    pasted = subprocess.run(["sh", "-c", typed.group(1) if typed else "false"], capture_output=True, text=True, timeout=30,
                            env={**environment(ME), "PATH": f"{tools}:/usr/bin:/bin"})
    check("pasted, it runs to its end", pasted.returncode == 0, pasted)
    profile = open(written).read() if os.path.exists(written) else ""
    check("what is written is a profile for doorward's own launcher that grants user namespaces and nothing else",
          f'profile doorward-launch "{top}/bin/doorward-launch" flags=(unconfined) {{\n  userns,\n}}\n' in profile, profile)
    loaded = open(written + ".loaded").read() if os.path.exists(written + ".loaded") else ""
    check("and that file is what is loaded", loaded.split() == ["-r", "/etc/apparmor.d/doorward-launch"], loaded)
    text = dw("doctor", who=USER, deny=NO_USERNS, files=APPARMOR)
    check("the doctor shows the same profile", "\n        profile doorward-launch " in text.stdout and text.returncode == 1, text)
    fixed = start(who=USER, files={})
    check("control: without the rule, the start works", fixed.stdout == "ran\n", fixed)


def real():
    """No emulation: places that doorward may find itself in."""
    status, rows, answer = doctor(files=None)
    sane = {n for n, r in rows.items() if r["state"] == "held"}
    check("control: this host as it is", {"userns", "mounts", "pids", "net", "landlock", "state", "overlay"} <= sane, answer)
    check("each wall and limit has a row", {"userns", "mounts", "pids", "net", "ipc", "seccomp", "landlock", "caps", "fds", "env",
                                            "session", "cgroup", "reap", "wall", "memory", "processes", "cpus", "disk", "files", "output",
                                            "open-files"} <= set(rows), sorted(rows))
    check("0 only where nothing is missing", status == any(r["state"] == "missing" for r in rows.values()), status, answer)
    check("the memory row agrees with a start", (rows["memory"]["state"] == "missing") == bool(DEGRADE[ME]), rows.get("memory"))
    if SANITIZED:
        return
    inside = [*scene({}), "--unshare-user", "--uid", "1000", "--gid", "1000", "--ro-bind", "/dev/null", "/proc/keys", "--"]
    done = dw("run", "--degrade", "memory", "--", "/bin/echo", "ran", before=inside)
    check("inside bubblewrap, a part of /proc covered: nothing runs, and the message says why and what to do",
          done.returncode == 125 and not done.stdout and "wall pids" in done.stderr and "--dev-bind / /" in done.stderr, done)
    status, rows, answer = doctor(before=inside)
    check("and so does the doctor there", status == 1 and rows.get("pids", {}).get("state") == "missing" and
          "--dev-bind / /" in rows["pids"]["remedy"] and "user namespace" in rows["surroundings"]["by"], answer)
    done = dw("run", "--degrade", "memory", "--", "/bin/echo", "ran",
              before=["bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--dev-bind", "/", "/", "--"])
    check("started as that remedy says, it runs behind whole walls", done.stdout == "ran\n", done)
    none = ["bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns", "--dev-bind", "/", "/", "--"]
    done = dw("run", "--degrade", "memory", "--", "/bin/echo", "ran", before=none)
    check("where no further user namespaces are allowed: refused, with the limit's name",
          done.returncode == 125 and not done.stdout and "max_user_namespaces" in done.stderr, done)
    status, rows, answer = doctor(before=none)
    check("and the doctor says that nothing else can be tried", status == 1 and rows.get("userns", {}).get("state") == "missing" and
          rows["net"]["state"] == "untried", answer)


def nested():
    """Inside a sandbox of doorward's own."""
    if SANITIZED:
        return
    degrade = DEGRADE[ME]
    outer = ["run", *degrade, "--read", top + "/bin:/parts", "--"]
    done = dw(*outer, "/parts/doorward", "run", "--degrade", "memory", "--", "/bin/echo", "ran")
    check("inside doorward: nothing runs, and the message says where it is", done.returncode == 125 and "ran" not in done.stdout and
          "inside a sandbox of doorward's" in done.stderr, done)
    done = dw(*outer, "/parts/doorward", "doctor", "--json")
    rows = {r["name"]: r for r in json.loads(done.stdout)["rows"]} if done.stdout else {}
    check("and so does the doctor there", done.returncode == 1 and rows.get("userns", {}).get("state") == "missing" and
          "sandbox of doorward's" in rows["userns"]["why"], done)


def ids():
    """Subordinate ids and their set-id helpers are not needed: a search path without them changes nothing."""
    env = {**environment(ME), "PATH": "/nonexistent"}
    done = dw("run", *DEGRADE[ME], "--", "/bin/echo", "ran", env=env)
    check("without newuidmap and newgidmap it runs all the same", done.stdout == "ran\n", done)


def state():
    """A state folder that cannot be written."""
    if SANITIZED:
        return
    inside = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", top, top, "--"]
    _, rows, answer = doctor(before=inside, env={**environment(ME), "XDG_STATE_HOME": top + "/elsewhere"})
    row = rows.get("state", {})
    check("a state folder on a read-only file system is missing, and XDG_STATE_HOME is named", row.get("state") == "missing" and
          "read-only" in f"{row['why']} {row['remedy']}" and "XDG_STATE_HOME" in row["remedy"], answer)
    done = dw("run", *DEGRADE[ME], "--", "/bin/echo", "ran", before=inside, env={**environment(ME), "XDG_STATE_HOME": top + "/elsewhere"})
    check("and a start there says the same", done.returncode == 125 and row.get("remedy", "-") in done.stderr, done)


def limits():
    status, rows, answer = doctor(before=["prlimit", "--nofile=512:512"])
    row = rows.get("open-files", {})
    check("fewer open files than asked for are degraded, with a remedy", row.get("state") == "degraded" and "512" in row["why"] and
          "ulimit -Hn" in row["remedy"], answer)


def ordinary():
    """Root hears also what an ordinary user would get."""
    if not ROOT:
        return
    _, _, answer = doctor()
    other = answer["ordinary_user"]
    names = {r["name"] for r in other["rows"]}
    check("root is told of an ordinary user too, who was asked as itself", other["uid"] == NOBODY and {"userns", "memory"} <= names and
          "state" not in names, answer)
    _, _, answer = doctor(env={**environment(ME), "SUDO_UID": "4242"})
    check("under sudo it is the one who called", answer["ordinary_user"]["uid"] == 4242, answer)


try:
    for part in (real, emulated, attributes, stranger, nested, ids, state, limits, ordinary):
        part()
finally:
    shutil.rmtree(top, ignore_errors=True)
finish()
