#!/usr/bin/python3
"""The house keeps its walls: src/ROOMS against every include and every link.

usage: rooms.py SOURCE_ROOT [BUILD_ROOT]   (TAP; with a build folder also what each executable links)
"""
import pathlib
import re
import subprocess
import sys

from tap import check, finish

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def nothing_wrong(name, problems):
    """One result; `problems` is a list of what is wrong."""
    check(name, not problems, *problems)


def read_rooms(path):
    """The tables of src/ROOMS: {room: set of rooms it may include}, {executable: set of rooms it may link}, and the
    executables that not every build makes."""
    rooms, programs, sometimes = {}, {}, set()
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if line.startswith("#") or not line.strip():
            continue
        if len(cells) == 4:
            rooms[cells[0]] = set(cells[1].split()) - {"-"}
        elif len(cells) in (2, 3):
            programs[cells[0]] = set(cells[1].split())
            if len(cells) == 3:
                sometimes.add(cells[0])
        else:
            sys.exit(f"Bail out! {path}: a row has four cells (a room) or two or three (an executable): {line!r}")
    return rooms, programs, sometimes


def wrong_includes(src, file, rooms):
    """What `file` includes and may not."""
    room = file.relative_to(src).parts[0]
    for header in INCLUDE.findall(file.read_text()):
        other = header.split("/")[0] if "/" in header else None
        where = f"{file.relative_to(src.parent)} includes \"{header}\""
        if other is None or ".." in header:
            yield f'{where}: write "room/file.h"'
        elif not any((src / header).with_suffix(end).is_file() for end in (".h", ".calls")):  # .calls: made into a header
            yield f"{where}: there is no such file under src/"
        elif other != room and other not in rooms.get(room, set()):
            yield f"{where}: src/ROOMS does not let {room} include {other}"


def cycles(rooms):
    """Rooms that reach themselves through the rows."""
    for start in rooms:
        seen, todo = set(), list(rooms[start])
        while todo:
            room = todo.pop()
            if room not in seen:
                seen.add(room)
                todo += rooms.get(room, ())
        if start in seen:
            yield f"{start} includes itself through others"


def reachable(rooms, first):
    """`first` and every room below it."""
    seen, todo = set(), list(first)
    while todo:
        room = todo.pop()
        if room not in seen:
            seen.add(room)
            todo += rooms.get(room, ())
    return seen


def header_comment(text):
    """The comment a file begins with, or ''."""
    found = re.match(r"\s*/\*.*?\*/", text, re.S)
    return found.group(0) if found else ""


def links(build):
    """Pairs of what the build makes and the rooms whose sources, objects or libraries go into it."""
    text = (build / "build.ninja").read_text().replace("$\n", "")
    for line in text.splitlines():
        found = re.match(r"build (\S+): (?:c_LINKER(?:_RSP)?|CUSTOM_COMMAND(?:_DEP)?) (.*)", line)
        if found:
            yield found.group(1), set(re.findall(r"(?:^|\s)(?:\S*/)?src/([a-z]+)/\S+\.[ca](?=\s|$)", found.group(2))) | set(
                re.findall(r"src_([a-z]+)_[A-Za-z0-9_]+\.c\.o", found.group(2)))


def wrong_links(build, rooms, programs, sometimes):
    made = set()
    for path, linked in links(build):
        name = pathlib.PurePath(path).name
        parts = pathlib.PurePath(path).parts
        if name in programs:
            allowed = programs[name]
            made.add(name)
        elif parts[0] == "src":  # a test of a room, or a file that it makes
            allowed = reachable(rooms, [parts[1]])
        elif name.startswith(("fuzz-", "test-")):
            continue
        else:
            allowed = set()
        for room in sorted(linked - allowed):
            yield f"{path} links {room}, which its row in src/ROOMS does not name"
    for name in sorted(set(programs) - made - sometimes):
        yield f"src/ROOMS names the executable {name}, which the build does not make"


def main():
    top = pathlib.Path(sys.argv[1]).resolve()
    src = top / "src"
    rooms, programs, sometimes = read_rooms(src / "ROOMS")
    folders = {path.name for path in src.iterdir() if path.is_dir()}
    nothing_wrong("every folder of src/ has a row in src/ROOMS", [f"src/{name}/ has none" for name in sorted(folders - set(rooms))])
    nothing_wrong("every row of src/ROOMS has a folder with code",
          [f"{name} has none" for name in sorted(rooms) if not list((src / name).glob("*.[ch]"))])
    nothing_wrong("rows name only rooms that exist",
          [f"{room} names {other}" for room in rooms for other in sorted(rooms[room] - set(rooms))]
          + [f"{name} names {other}" for name in programs for other in sorted(programs[name] - set(rooms))])
    nothing_wrong("no cycle", sorted(cycles(rooms)))
    for room in sorted(folders):
        files = sorted((src / room).rglob("*.[ch]"))
        nothing_wrong(f"{room} includes only what its row allows",
              [problem for file in files for problem in wrong_includes(src, file, rooms)])
        nothing_wrong(f"each source of {room} says in its first comment where it runs",
              [f"{file.relative_to(top)}: no 'runs in:' in its first comment" for file in files
               if not file.name.endswith(("_test.c", "_fuzz.c")) and "runs in:" not in header_comment(file.read_text())])
    if len(sys.argv) > 2:
        nothing_wrong("each executable links only its rooms", list(wrong_links(pathlib.Path(sys.argv[2]), rooms, programs, sometimes)))
    finish()


if __name__ == "__main__":
    main()
