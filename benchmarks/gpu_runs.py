# SPDX-License-Identifier: Apache-2.0
"""What the programs in Python that measure a GPU share: runs of `plimsoll train`, and goals."""

import json
import math
import subprocess
import sys

PLIMSOLL = "build/release/cli/plimsoll"
TIMEOUT_S = 300

UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def add_options(parser):
    """Those that all of the programs take."""
    parser.add_argument("--plimsoll", default=PLIMSOLL, help="the program; default %(default)s")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S,
                        help="seconds after which a run is given up; default %(default)s")
    parser.add_argument("--json", metavar="FILE", help="write all results here")


def stop(program, message):
    """Ends the program where it cannot measure anything."""
    print(f"{program}: {message}", file=sys.stderr)
    sys.exit(2)


def require_gpu(program, plimsoll):
    """Ends the program if there is no plimsoll, or no GPU that it can train on."""
    try:
        done = subprocess.run([plimsoll, "devices", "--json"], capture_output=True, text=True,
                              timeout=TIMEOUT_S)
    except OSError as error:
        stop(program, f"{plimsoll}: {error.strerror}; build it, or give --plimsoll")
    except subprocess.TimeoutExpired:
        stop(program, f"{plimsoll} devices: no answer in {TIMEOUT_S} s")
    if done.returncode != 0:
        stop(program, in_a_line(done.stderr))
    found = json.loads(done.stdout)
    if not any(device["device"].startswith("cuda") for device in found["devices"]):
        stop(program, found.get("note") or "no GPU")


def in_a_line(text, most=300):
    """The end of what a program said, without the marks below lines in Python's."""
    return " ".join(word for word in text.split() if word.strip("^~"))[-most:]


def train(plimsoll, model, batch, options, timeout_s):
    """Trains on one batch that stays on the card; returns what --json prints, or {"error": why}."""
    command = [plimsoll, "train", "--model", model, "--batch", str(batch), "--device", "cuda",
               "--keep-batch", "--wait-for-plan", "--json", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {timeout_s:g} s"}
    if done.returncode != 0:
        said = in_a_line(done.stderr) or in_a_line(done.stdout)
        return {"error": said or f"exit code {done.returncode}"}
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"error": "no JSON: " + in_a_line(done.stdout)}


def parse_bytes(text):
    """Of "3.5GB", "512MiB" or "1048576"; raises ValueError, also if it is negative or infinite."""
    for unit, unit_bytes in UNITS.items():
        if text.endswith(unit):
            size = float(text[:-len(unit)]) * unit_bytes
            break
    else:
        size = int(text)
    if not 0 <= size < math.inf:  # Nor is NaN.
        raise ValueError(f"{text}: no size")
    return round(size)


def goal_line(text, met):
    return f"  {text:80} {'met' if met else 'missed'}"


def write_json(path, results):
    if path is None:
        return
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
