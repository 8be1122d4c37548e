#!/usr/bin/env python3
"""check_tests.py BINARY: no test is left out.

Every test/<folder>/<idea>_test.cc has test cases, each named "<folder>/<idea>: <behaviour>" (ctest runs a folder's
cases by that name), and every one of them is in BINARY. Prints one line per finding; exit status 1 if there are any.
"""

import re
import subprocess
import sys
from pathlib import Path

TEST = Path(__file__).resolve().parent.parent / "test"
CASE = re.compile(r'^[ \t]*TEST_CASE\w*\(\s*(?:\w+\s*,\s*)?((?:"(?:\\.|[^"\\])*"\s*)+)', re.MULTILINE)


def case_names(text):
    for match in CASE.finditer(text):
        yield "".join(re.findall(r'"((?:\\.|[^"\\])*)"', match.group(1))).replace('\\"', '"')


def main():
    listing = subprocess.run(
        [sys.argv[1], "--list-test-cases", "--no-colors"], capture_output=True, text=True, check=True
    )
    in_binary = {line for line in listing.stdout.splitlines() if not line.startswith(("[doctest]", "====="))}

    findings, seen = [], {}
    for path in sorted(TEST.rglob("*_test.cc")):
        place = path.relative_to(TEST).as_posix()
        names = list(case_names(path.read_text(encoding="utf-8")))
        if place.count("/") != 1:
            findings.append(f"{place}: not in test/<folder>/")
        if not names:
            findings.append(f"{place}: no TEST_CASE")
        for name in names:
            if not name.startswith(place.removesuffix("_test.cc") + ": "):
                findings.append(f'{place}: "{name}" should begin with "{place.removesuffix("_test.cc")}: "')
            if name in seen:
                findings.append(f'{place}: "{name}" is in {seen[name]} too')
            seen[name] = place
            if not any(listed == name or listed.startswith(name + "<") for listed in in_binary):
                findings.append(f'{place}: "{name}" is not in the binary')
    print("\n".join(findings) if findings else f"{len(seen)} test cases, all in the binary")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
