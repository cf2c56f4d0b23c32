#!/usr/bin/python3
"""What the documents say is so: verbs and options in the manual pages, links, examples that check."""
import os
import pathlib
import re
import subprocess

from tap import check, finish

TOP = pathlib.Path(os.environ["DOORWARD_SOURCE"])
DOORWARD = os.environ["DOORWARD"]


def nothing_wrong(name, problems):
    """One result; `problems` is a list of what is wrong."""
    check(name, not problems, *problems)


def output(*args):
    return subprocess.run([DOORWARD, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False).stdout


def verbs():
    """The names that `doorward help` lists."""
    return [name for name in re.findall(r"^  ([a-z]+)\s", output("help"), re.M) if name != "help"]


def pages():
    """{verb: the manual page that names it doorward-VERB}."""
    found = {}
    for page in sorted((TOP / "man").glob("*.1")):
        text = page.read_text()
        for name in re.findall(r"^\.Nm doorward-([a-z]+)", text.split(".Sh SYNOPSIS")[0], re.M):
            found[name] = text
    return found


def long_options(text):
    """Options of a page as it stands in its source."""
    return set(re.findall(r"Fl -([a-z][a-z-]*)", text))


def without_page(all_pages):
    for verb in verbs():
        if verb not in all_pages:
            yield f"doorward {verb} has no page in man/ that names doorward-{verb}"
    for verb in all_pages:
        if verb not in verbs():
            yield f"man/ describes doorward {verb}, which does not exist"


def undocumented(all_pages):
    shared = {}
    for verb in verbs():
        options = set(re.findall(r"--([a-z][a-z-]*)", output("help", verb))) - {"help"}
        page = all_pages.get(verb, "")
        shared.setdefault(page, set()).update(options)
        for option in sorted(options - long_options(page)):
            if not (verb == "plan" and option in long_options(all_pages.get("run", ""))):
                yield f"doorward {verb} --{option} is not in its page"
    for page, options in shared.items():
        for option in sorted(long_options(page) - options - {"version"}):
            yield f"a page in man/ describes --{option}, which none of its verbs has"


def dead_links():
    for page in [*TOP.glob("*.md"), *TOP.glob("docs/**/*.md"), *TOP.glob("examples/*.md"), *TOP.glob("bench/*.md")]:
        for link in re.findall(r"\]\(([^)#:\s]+)\)", page.read_text()):
            if not (page.parent / link).exists():
                yield f"{page.relative_to(TOP)} links {link}, which is not there"


def refused_examples():
    for example in sorted((TOP / "examples").glob("*.yaml")):
        done = subprocess.run([DOORWARD, "check", example], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            yield f"doorward check {example.name}: {done.stderr.strip()}"


def missing_tests():
    """docs/field-cases.md: rows that name no test, and names that no test has."""
    tests = {page.name: page.read_text() for page in (TOP / "tests").glob("*.py")}
    probes = set(re.findall(r'^    \{"([a-z0-9-]+)", "', (TOP / "src/lab/rows.c").read_text(), re.M))
    for row in re.findall(r"^\| ([AB][0-9]+ .*) \|$", (TOP / "docs/field-cases.md").read_text(), re.M):
        case, tested = row.split(" | ")[0], row.split(" | ")[-1]
        named = 0
        for where, names in re.findall(r"([a-z]+\.py|probe) (.*?)(?=, (?:[a-z]+\.py|probe) |$)", tested):
            for name in re.findall(r"`(.*?)`", names) if where != "probe" else names.split(", "):
                named += 1
                if name not in (probes if where == "probe" else tests.get(where, "")):
                    yield f"{case}: {where} has no {name}"
        if not named:
            yield f"{case} names no test"


def main():
    all_pages = pages()
    nothing_wrong("doorward help lists verbs", [] if verbs() else ["it lists none"])
    nothing_wrong("every verb has a manual page, and every page a verb", list(without_page(all_pages)))
    nothing_wrong("every option is in its page, and every page's options exist", list(undocumented(all_pages)))
    nothing_wrong("links between documents lead somewhere", list(dead_links()))
    nothing_wrong("the tests that docs/field-cases.md names exist", list(missing_tests()))
    nothing_wrong("the examples are accepted", list(refused_examples()))
    nothing_wrong("HACKING.md has at most 150 lines",
          [] if len((TOP / "HACKING.md").read_text().splitlines()) <= 150 else ["it has more"])
    finish()


if __name__ == "__main__":
    main()
