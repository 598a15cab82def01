#!/usr/bin/env python3
"""Prints a job's summary for people; exit code 1 when it falls short of what is demanded."""
import argparse
import json
import sys


def milliseconds(value):
    return "never" if value is None else f"{value:.0f} ms"


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file")
    options.add_argument("--accuracy-min", type=float)
    options.add_argument("--failures-min", type=int, default=0)
    given = options.parse_args()
    with open(given.file, encoding="utf-8") as text:
        summary = json.load(text)

    print(f"steps committed   {summary['steps_committed']} in {summary['wall_s']:.1f} s, "
          f"{summary['samples_per_s']:.0f} samples/s, goodput {summary['goodput']:.2f}")
    for failure in summary["failures"]:
        print(f"failure           worker {failure['rank']} at step {failure['step']}: {failure['cause']}; "
              f"detected in {milliseconds(failure['detected_ms'])}, "
              f"training again after {milliseconds(failure['recovered_ms'])}, "
              f"steps lost {failure['steps_lost']}, state from {failure['source'] or 'nowhere'}")
    print(f"survivors         {'kept their processes' if summary['survivors_kept'] else 'were restarted'}")
    checkpoints = summary["checkpoint"]
    print(f"checkpoints       {checkpoints['written']} written, {checkpoints['failed']} failed")
    print(f"test accuracy     {summary['accuracy']}")

    if len(summary["failures"]) < given.failures_min:
        sys.exit(f"expected at least {given.failures_min} failure(s) to recover from, "
                 f"saw {len(summary['failures'])}")
    if given.accuracy_min is not None and (summary["accuracy"] or 0) < given.accuracy_min:
        sys.exit(f"the test accuracy is below {given.accuracy_min}")


if __name__ == "__main__":
    main()
