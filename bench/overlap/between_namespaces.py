"""A step whose gradients are summed over a slow link during backward, beside one that sums after it.

Usage:  sudo python3 bench/overlap/between_namespaces.py [--build build] [--rate 2gbit] [--size 4MiB]
        [--rounds 5] [--backward cpu|stand-in]
Output: medians of the rounds. Two ranks in two network namespaces; the cable between them carries `--rate`
each way (tc tbf), so that the network is what the sum waits for. Backward is made as long as the sum alone:
there is most to hide. `cpu`: the ranks' threads compute; `stand-in`: they only wait, as for a device.
Exit code 77 where namespaces are not permitted.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "process"))
from namespaces import Cable, permitted  # noqa: E402

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
LAYERS = 16


def bytes_of(text):
    known = re.fullmatch(r"(\d+)(KiB|MiB)", text)
    if not known:
        raise argparse.ArgumentTypeError(f"'{text}' is no size such as 512KiB or 4MiB")
    return int(known[1]) * UNITS[known[2]]


def step(chosen, cable, **options):
    words = [f"{chosen.build}/bin/overlap_step", "--bytes", str(chosen.size), "--layers", str(LAYERS),
             "--iterations", str(chosen.iterations)]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    for place in cable.places():
        words += ["--place", place]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["step_ms"]["p50"]


def main():
    options = argparse.ArgumentParser(description="Sums during backward, over a slow link.")
    options.add_argument("--build", default="build", help="folder of the build (build)")
    options.add_argument("--rate", default="2gbit", help="of the link, each way (2gbit)")
    options.add_argument("--size", type=bytes_of, default="4MiB", help="of the gradients (4MiB)")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--backward", choices=("cpu", "stand-in"), default="cpu", help="by whom (cpu)")
    options.add_argument("--iterations", type=int, default=30, help="steps a measurement (30)")
    chosen = options.parse_args()
    missing = permitted()
    if missing:
        print(f"SKIPPED: {missing}")
        return 77
    rows = []
    with Cable() as cable:
        cable.slow_down(chosen.rate)
        for turn in range(chosen.rounds):
            total = step(chosen, cable, backward="none")
            layer = {"backward": chosen.backward, "layer_us": 1000 * total / LAYERS}
            row = {"sum": total, "backward": step(chosen, cable, alone=True, **layer),
                   "after": step(chosen, cable, **layer),
                   "during": step(chosen, cable, bucket=chosen.size // LAYERS, **layer)}
            rows.append(row)
            print(f"round {turn + 1}: " + ", ".join(f"{key} {ms:.1f} ms" for key, ms in row.items()),
                  file=sys.stderr)
    median = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    longer = [max(row["sum"], row["backward"]) for row in rows]
    ratios = {key: statistics.median(row[key] / one for row, one in zip(rows, longer))
              for key in ("after", "during")}
    print(f"gradients of {chosen.size >> 10} KiB, two ranks, a link of {chosen.rate} each way, "
          f"backward: {chosen.backward}")
    for key, ms in median.items():
        print(f"{key:>9} {ms:9.2f} ms" + (f"   {ratios[key]:.2f} x the longer of sum and backward"
                                          if key in ratios else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
