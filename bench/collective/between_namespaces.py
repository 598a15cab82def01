"""The sum of gradients between two network namespaces, beside the transport under it and Gloo.

Usage:  sudo python3 bench/collective/between_namespaces.py [--build build] [--repetitions 3]
                                                            [--two-levels [2+2]] [--shards N] [--rate 2gbit]
Output: a table of medians of the repetitions, whose programs take turns, and the ratios that are asked for.
The time of a sum is that of its slower rank; every rank rewrites its input before each. `transport` moves the
bytes of the sum, one transfer each way at the same time, over sessions as a job has them.
`--rate`: what the cable carries each way (tc tbf); without it, as much as the processors do.
With `--two-levels` instead: so many ranks in each namespace; over the network between all, and in two
levels, memory first. `flat / levels`: the median of pairs that ran one after the other. `cable`: what passes
between the namespaces for one sum, both ways, with all headers.
Exit code 77 where namespaces are not permitted.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "process"))
from namespaces import Cable, permitted  # noqa: E402

SIZES = {"4KiB": 4 << 10, "64KiB": 64 << 10, "1MiB": 1 << 20, "16MiB": 16 << 20, "64MiB": 64 << 20}
ITERATIONS = {"4KiB": 1000, "64KiB": 1000, "1MiB": 200, "16MiB": 20, "64MiB": 10}
SYSTEMS = {"troupe": ("allreduce_ring",), "transport": ("allreduce_ring", "--transport-only"),
           "gloo": ("allreduce_gloo",)}
WAYS = {"flat": (), "levels": ("--two-levels",)}
WARM_UP_SUMS = 3  # of a program that is not given time to warm up


def measure(build, cable, times):
    where = [word for place in cable.places() for word in ("--place", place)]
    for system, (program, *options) in SYSTEMS.items():
        path = f"{build}/bin/{program}"
        for size, count in SIZES.items() if os.path.exists(path) else ():
            done = subprocess.run([path, "--ranks", "2", "--bytes", str(count), "--iterations",
                                   str(ITERATIONS[size]), *options, *where],
                                  capture_output=True, text=True, check=True)
            times.setdefault((system, size), []).append(json.loads(done.stdout)["time_us"]["p50"])


def run_many(chosen, cable, *options):
    ranks = [int(count) for count in chosen.two_levels.split("+")]
    places = [place for place, count in zip(cable.places(), ranks) for _ in range(count)]
    where = [word for place in places for word in ("--place", place)]
    shards = ("--shards", str(chosen.shards)) if chosen.shards else ()
    done = subprocess.run([f"{chosen.build}/bin/allreduce_ring", "--ranks", str(len(places)), *shards,
                           *options, *where], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["time_us"]["p50"]


def measure_many(chosen, cable, times, cables):
    for size, count in SIZES.items():
        for way in WAYS:
            options = ("--bytes", str(count), "--iterations", str(ITERATIONS[size]), *WAYS[way])
            times.setdefault((way, size), []).append(run_many(chosen, cable, *options))
            before = cable.carried()
            run_many(chosen, cable, *options, "--warm-up-ms", "0")
            cables[way, size] = (cable.carried() - before) / (ITERATIONS[size] + WARM_UP_SUMS)


def tell_many(times, cables):
    median = {key: statistics.median(each) for key, each in times.items()}
    print(f"{'size':>6} {'flat, us':>12} {'levels, us':>12} {'flat / levels':>14} "
          f"{'flat, cable':>14} {'levels, cable':>14} {'ratio':>6}")
    for size in SIZES:
        flat, levels = median["flat", size], median["levels", size]
        pairs = statistics.median(f / l for f, l in zip(times["flat", size], times["levels", size]))
        many, few = cables["flat", size], cables["levels", size]
        print(f"{size:>6} {flat:12.1f} {levels:12.1f} {pairs:14.2f} {many:14.0f} {few:14.0f} "
              f"{many / few:6.2f}")


def main():
    options = argparse.ArgumentParser(description="Sums between two network namespaces, and Gloo's.")
    options.add_argument("--build", default="build", help="folder of the build (build)")
    options.add_argument("--repetitions", type=int, default=3, help="of every program, by turns (3)")
    options.add_argument("--two-levels", nargs="?", const="2+2", metavar="RANKS+RANKS",
                         help="so many ranks a side (2+2), flat and in levels")
    options.add_argument("--rate", help="of the cable each way, such as 2gbit (no limit)")
    options.add_argument("--shards", type=int, help="of the sums in levels (one a rank)")
    chosen = options.parse_args()
    missing = permitted()
    if missing:
        print(f"SKIPPED: {missing}")
        return 77
    times, cables = {}, {}
    with Cable() as cable:
        if chosen.rate:
            cable.slow_down(chosen.rate)
        for turn in range(chosen.repetitions):
            print(f"turn {turn + 1} of {chosen.repetitions}", file=sys.stderr)
            if chosen.two_levels:
                measure_many(chosen, cable, times, cables)
            else:
                measure(chosen.build, cable, times)
    print(f"load {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)
    if chosen.two_levels:
        tell_many(times, cables)
        return 0
    median = {key: statistics.median(each) for key, each in times.items()}
    print(f"{'size':>6} {'troupe, us':>12} {'transport, us':>14} {'gloo, us':>12} "
          f"{'bandwidth / transport':>22} {'gloo / troupe':>14}")
    for size in SIZES:
        one, under = median["troupe", size], median["transport", size]
        other = median.get(("gloo", size))
        print(f"{size:>6} {one:12.1f} {under:14.1f} {other or float('nan'):12.1f} {under / one:22.2f} "
              f"{(other or float('nan')) / one:14.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
