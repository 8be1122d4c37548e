#!/usr/bin/env python3
"""The architecture, checked: who may include what, and what the library never does.

Rooms and their order are those of lib/rooms.txt. Prints one line per finding; exit status 1 if there are any.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = [line for line in (ROOT / "lib/rooms.txt").read_text().split("\n") if re.match(r"[a-z]", line)]
ROOMS.append("cuda")  # below all others; built only with CUDA, by cmake/Cuda.cmake
APART = "lib/nullgpu"  # a library of its own: includes nothing else, and does what a driver does

# Third-party headers, and where they may be included ("test" may include all of them).
LIBRARIES = {
    r"CLI/": {"app"},
    r"(spdlog|fmt)/": {"app"},
    r"yaml-cpp/": {"lib/config"},
    r"nlohmann/": {"lib/config", "lib/checkpoint", "lib/report", "lib/verify"},
    r"re2/": {"lib/model"},
    r"doctest/": set(),
}

# What lib/ leaves to app/: output, exit, clock, environment.
NEVER_IN_LIB = {
    r"#\s*include\s*<(iostream|print|syncstream)>": "stream output",
    r"\b(v?f?printf|f?puts|putchar)\s*\(": "printing",
    r"\bstd::(cout|cerr|clog)\b": "printing",
    r"(?<![.>\w])(getenv|secure_getenv|setenv|putenv)\s*\(": "the environment",
    r"(?<![.>\w])(_?exit|_Exit|quick_exit|abort|terminate)\s*\(": "ending the program",
    r"\b(system_clock|steady_clock|high_resolution_clock)\b": "a clock",
    r"(?<![.>\w])(clock_gettime|gettimeofday|std::time|std::clock)\s*\(": "a clock",
}

# A fork that could not become its program must end, and not run ours on.
ENDS_ITS_CHILD = ("lib/base/subprocess.cc", "lib/base/process_keeper.cc")

COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def blank(match):
    """Comments become spaces, strings become empty; line numbers stay."""
    text = match.group(0)
    return "\n" * text.count("\n") if text.startswith("/") else '""' + "\n" * text.count("\n")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def folder_of(path):
    """'lib/<room>', 'app', 'test' or 'kernels'."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] == "lib" else parts[0]


def check_file(path, edges):
    folder = folder_of(path)
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    includes = [(line_of(text, m.start()), m.group(1) == '"', m.group(2)) for m in INCLUDE.finditer(text)]

    if folder == APART:
        for line, own, target in includes:
            if own and ("lib/" + target).startswith(APART + "/") and (ROOT / "lib" / target).is_file():
                edges.setdefault(name, []).append("lib/" + target)
            elif own:
                yield f"{name}:{line}: {folder}/ includes only its own files, not {target}"
    elif folder.startswith("lib/"):
        room = folder[4:]
        if room not in ROOMS or len(path.relative_to(ROOT).parts) != 3:
            yield f"{name}:1: not in a room: files of the library are lib/<room of lib/rooms.txt>/<idea>.h or .cc"
            return
        code = COMMENT_OR_STRING.sub(blank, text)
        for pattern, what in NEVER_IN_LIB.items():
            if what == "ending the program" and name in ENDS_ITS_CHILD:
                continue
            for m in re.finditer(pattern, code):
                yield f"{name}:{line_of(code, m.start())}: the library leaves {what} to app/: {m.group(0).strip()}"
        for line, own, target in includes:
            if not own or (room == "cuda" and (ROOT / "kernels" / target).is_file()):
                continue
            target_room = target.split("/")[0]
            if target_room not in ROOMS or not (ROOT / "lib" / target).is_file():
                yield f'{name}:{line}: "{target}" is not a file of lib/ (write "<room>/<idea>.h")'
            elif ROOMS.index(target_room) > ROOMS.index(room):
                yield f"{name}:{line}: {room}/ includes {target}, but {target_room}/ is below it"
            else:
                edges.setdefault(name, []).append("lib/" + target)
    elif folder == "kernels":
        for line, own, target in includes:
            if own and not (ROOT / "kernels" / target).is_file():
                yield f"{name}:{line}: kernels/ includes only its own files, not {target}"

    for line, own, target in includes:
        for pattern, allowed in LIBRARIES.items():
            if not own and re.match(pattern, target) and folder != "test" and folder not in allowed:
                yield f"{name}:{line}: <{target}> belongs in {', '.join(sorted(allowed)) or 'test'} only"

    if path.suffix in (".h", ".cuh") and "#pragma once" not in text:
        yield f"{name}:1: no #pragma once"
    header = path.with_suffix(".h")
    if path.suffix == ".cc" and header.is_file():
        first = includes[0][2] if includes else "nothing"
        if first.split("/")[-1] != header.name:
            yield f"{name}:1: includes {first} before its own header, so nothing shows that {header.name} stands alone"


def cycles(edges):
    """Every cycle of includes, once, as found by a depth-first walk."""
    done, trail = set(), []

    def walk(name):
        if name in trail:
            yield trail[trail.index(name):] + [name]
        elif name not in done:
            trail.append(name)
            for target in edges.get(name, []):
                yield from walk(target)
            trail.pop()
            done.add(name)

    for name in sorted(edges):
        yield from walk(name)


def main():
    paths = sorted(
        path
        for folder in ("lib", "app", "kernels", "test")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".h", ".cc", ".cu", ".cuh")
    )
    edges = {}
    findings = [finding for path in paths for finding in check_file(path, edges)]
    findings += [f"{cycle[0]}:1: includes itself: {' -> '.join(cycle)}" for cycle in cycles(edges)]
    print("\n".join(findings) if findings else f"{len(paths)} files: no findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
