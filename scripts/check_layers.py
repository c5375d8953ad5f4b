#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every #include follows the layers of ARCHITECTURE.md.

A folder under src/plimsoll includes only itself and what is listed for it here, or what those use
in turn. Prints each include that does not, and exits with 1 if there is one.
"""

import pathlib
import re
import sys

# What each folder may include directly; what those may include comes with it.
ALLOWED = {
    "base": [],
    "trace": ["base"],
    "chain": ["trace"],
    "place": ["base"],
    "plan": ["trace", "place"],
    "sim": ["plan"],
    "learn": ["plan"],
    "planners": ["plan", "sim", "chain", "learn"],
    "report": ["trace", "plan"],
    "device": ["base"],
    "exec": ["plan", "planners", "device"],
    "nn": ["exec"],
    "cuda": ["nn"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"plimsoll/([^/"]+)/')


def closure(folder):
    """Returns the folder and everything that it may include, directly or not."""
    seen = set()
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting.extend(ALLOWED[current])
    return seen


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    source = root / "src" / "plimsoll"
    faults = []
    files = 0
    for folder in sorted(path for path in source.iterdir() if path.is_dir()):
        if folder.name not in ALLOWED:
            faults.append(f"{folder.relative_to(root)}: a folder that no layer knows")
            continue
        allowed = closure(folder.name)
        for path in sorted(folder.rglob("*")):
            if path.suffix not in {".h", ".cc", ".cu", ".cuh"}:
                continue
            files += 1
            # Tests of a folder may look further down, never up: the same rule.
            for number, line in enumerate(path.read_text().splitlines(), start=1):
                match = INCLUDE.match(line)
                if match and match.group(1) not in allowed:
                    faults.append(
                        f"{path.relative_to(root)}:{number}: {folder.name} must not include"
                        f" {match.group(1)}"
                    )
    for fault in faults:
        print(fault)
    print(f"{files} files, {len(faults)} includes against the layers")
    return 1 if faults or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
