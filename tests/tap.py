"""TAP for the tests in this folder: check(name, holds, notes...) prints one line, finish() the plan, and ends."""
import sys

_count = 0
_failures = 0


def check(name, holds, *notes):
    """One result; the notes are shown where it does not hold."""
    global _count, _failures
    _count += 1
    _failures += not holds
    for note in notes if not holds else ():
        print("# " + str(note)[:3000].replace("\n", "\n# "))
    print(f"{'ok' if holds else 'not ok'} {_count} - {name}", flush=True)


def finish():
    """The end of every test program."""
    print(f"1..{_count}")
    sys.exit(_failures != 0)
