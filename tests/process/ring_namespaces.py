"""Sums between two processes in two network namespaces have the bits of the sum in shared memory.

Usage:  ring_namespaces.py --program ring_probe
Output: a line a size; exit code 77 (CTest: skipped) where namespaces are not permitted.
"""

import argparse
import os
import subprocess
import sys

from harness import say
from namespaces import Cable, permitted

DEADLINE_S = 60
SIZES = (100, 20_000, 2_000_000)  # elements: by exchange, at its end, in slices of many pieces


def shared_memory(program, elements):
    done = subprocess.run([program, "shm", str(elements)], capture_output=True, text=True, check=True,
                          timeout=DEADLINE_S)
    return done.stdout.strip()


def between_namespaces(program, cable, elements):
    ranks = [subprocess.Popen([*cable.inside(side), program, "ring", cable.device(side), str(rank),
                               str(elements)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
             for rank, side in enumerate("ab")]
    try:
        members = "".join(rank.stdout.readline() for rank in ranks)
        for rank in ranks:
            rank.stdin.write(members)
            rank.stdin.flush()
        digests = [rank.stdout.readline().strip() for rank in ranks]
        for rank in ranks:
            rank.stdin.close()
        codes = [rank.wait(DEADLINE_S) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return digests if codes == [0, 0] else [f"exit codes {codes}"]


def main():
    options = argparse.ArgumentParser(description="Sums between two network namespaces.")
    options.add_argument("--program", required=True, help="the ring_probe to use")
    program = os.path.abspath(options.parse_args().program)
    missing = permitted()
    if missing:
        say(f"SKIPPED: {missing}")
        return 77
    wrong = 0
    with Cable() as cable:
        for elements in SIZES:
            expected, got = shared_memory(program, elements), between_namespaces(program, cable, elements)
            same = got == [expected, expected]
            wrong += not same
            say(f"{'ok  ' if same else 'FAIL'} {elements} elements: {expected}"
                + ("" if same else f", between namespaces {got}"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
