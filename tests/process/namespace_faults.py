"""Faults of the network between two processes in two network namespaces.

Usage:  namespace_faults.py --program fault_probe [--sessions] [--detect-after MS] [--only TEXT]
                            [--table [FILE]]
Output: as fault_matrix.py; exit code 77 (CTest: skipped) where namespaces or nft are not permitted.
"""

import argparse
import os
import sys

from fault_matrix import Matrix, markdown
from namespaces import Cable, permitted
from probes import Late, Probe, Watch, in_words, now_ms, say

STAGES = ("wire-up", "idle", "waiting", "stream", "bulk")
BRIDGED, TOLD = "bridged", "both told"
RESET = "connections reset"  # told where nothing opens the path again; bridged by a session
FAULTS = {
    "cut for less than detect_after": BRIDGED,
    "cut for more than detect_after": TOLD,
    "link down": TOLD,
    "one-way drop": TOLD,
    RESET: TOLD,
}
# Nothing can be reset yet; and Linux repeats the first packet of a connection after a second, however short a
# cut was: as long as these probes wait for each other.
NOT_WIRED_UP = (RESET, "cut for less than detect_after")


class Cell:
    def __init__(self, stage, fault, sessions):
        self.stage, self.fault = stage, fault
        self.expected = BRIDGED if sessions and fault == RESET else FAULTS[fault]
        self.wrong, self.told, self.latest_ms, self.left = [], ["", ""], None, "nothing"

    @property
    def name(self):
        return f"{self.stage} / {self.fault}"

    def row(self):
        at = "-" if self.latest_ms is None else f"{self.latest_ms:.0f}"
        return [self.stage, self.fault, *(told or "nothing" for told in self.told), at, self.left,
                "; ".join(self.wrong) or self.expected]


class Network:
    def __init__(self, program, detect_ms, sessions):
        self.program, self.detect_ms, self.sessions = program, detect_ms, sessions

    def run(self, stage, fault):
        cell = Cell(stage, fault, self.sessions)
        with Cable() as cable, Watch() as watch:
            probes, since = [], now_ms()
            try:
                last = [str(self.detect_ms), *(["sessions"] if self.sessions else [])]
                probes += [Probe(side, [self.program, "tcp", cable.device(side), *last],
                                 watch, cable.inside(side)) for side in ("a", "b")]
                if stage == "wire-up":  # nothing has gone through when the fault comes
                    self.strike(cell, cable)
                    Matrix.connect(*probes)
                else:
                    Matrix.begin(stage, *probes)
                    since = now_ms()
                    self.strike(cell, cable)
                if cell.fault == "cut for more than detect_after":
                    for probe in probes:  # both decide while it lasts
                        probe.decision()
                    cable.plug(True)
                self.judge(cell, probes, since)
                if cell.fault == "cut for less than detect_after" and not cable.cut_packets():
                    cell.wrong.append("nothing was on its way while it was cut")
                self.finish(cell, probes, watch)
            except (Late, RuntimeError) as late:
                cell.wrong.append(f"HANGS: {late}")
                cell.told = [in_words(probe.told(), since) for probe in probes] or cell.told
        say(f"{'ok  ' if not cell.wrong else 'FAIL'} {cell.name}: {' | '.join(cell.row()[2:])}")
        return cell

    def strike(self, cell, cable):
        if cell.fault == "one-way drop":
            return cable.drop_towards("b")
        if cell.fault == RESET:
            if not cable.reset_connections():
                cell.wrong.append("the kernel cannot reset connections (INET_DIAG_DESTROY)")
            return None
        if cell.fault == "cut for less than detect_after":
            return cable.cut_for(self.detect_ms / 4)
        return cable.plug(False)

    def judge(self, cell, probes, since):
        if cell.expected == BRIDGED:
            for probe in probes:
                probe.wait("open")
            Matrix.still_talks(*probes)
            if cell.stage in ("stream", "bulk"):
                event = {"stream": "streaming", "bulk": "bulk_sent"}[cell.stage]
                for probe in probes:
                    probe.wait(event, probe.count(event) + 2)
        else:
            times = []
            for probe in probes:
                times.append(probe.decision()["t"] - since)
                if cell.stage != "wire-up":
                    probe.wait("told", what="down")
                if cell.stage == "waiting":
                    probe.wait("told", what="request_failed")
            cell.latest_ms = max(times)
        for probe in probes:
            if cell.expected == BRIDGED and probe.told():
                cell.wrong.append(f"{probe.name} was told something")
            if any(probe.count("told", what=what) > 1 for what in ("path_lost", "verdict", "down")):
                cell.wrong.append(f"{probe.name} was told more than once")
            if probe.count("disorder"):
                cell.wrong.append("messages came out of order")
        cell.told = [in_words(probe.told(), since) for probe in probes]

    @staticmethod
    def finish(cell, probes, watch):
        for probe in probes:
            probe.tell("quit")
            if probe.end() != 0:
                cell.wrong.append(f"{probe.name} ended with {probe.process.returncode}: {probe.errors()}")
            last = probe.wait("left")
            if cell.fault == RESET and cell.expected == BRIDGED and last["bridged"] == 0:
                cell.wrong.append(f"no path of {probe.name} was bridged")
            if cell.expected == TOLD and (last["requests"] or last["proxies"]):
                cell.wrong.append(f"{probe.name} still held {last['requests']} requests, "
                                  f"{last['proxies']} handles")
        left = watch.left_behind()
        if left:
            cell.left = ", ".join(left)
            cell.wrong.append("something was left behind")


HEAD = ["stage", "fault", "a was told (code), after ms", "b was told (code), after ms", "both after ms",
        "left behind", "verdict"]


def main():
    options = argparse.ArgumentParser(description="Faults of the network between two processes.")
    options.add_argument("--program", required=True, help="the fault_probe to use")
    options.add_argument("--sessions", action="store_true", help="sessions over the path, as jobs have")
    options.add_argument("--detect-after", type=int, default=1000, metavar="MS")
    options.add_argument("--only", default="", metavar="TEXT", help="cells whose name has it")
    options.add_argument("--table", nargs="?", const="-", metavar="FILE", help="write the table; judge times")
    chosen = options.parse_args()
    missing = permitted()
    if missing:
        say(f"SKIPPED: {missing}")
        return 77
    network = Network(os.path.abspath(chosen.program), chosen.detect_after, chosen.sessions)
    cells = [network.run(stage, fault) for stage in STAGES for fault in FAULTS
             if chosen.only in f"{stage} / {fault}" and not (stage == "wire-up" and fault in NOT_WIRED_UP)]
    for cell in cells:
        if chosen.table and cell.latest_ms is not None and cell.latest_ms > 2 * chosen.detect_after:
            cell.wrong.append("later than 2 x detect_after")
    table = markdown(HEAD, [cell.row() for cell in cells])
    if chosen.table and chosen.table != "-":
        with open(chosen.table, "w", encoding="utf-8") as file:
            file.write(table + "\n")
    else:
        say("\n" + table)
    failed = [cell.name for cell in cells if cell.wrong]
    say(f"\n{len(cells)} cells, detect_after {chosen.detect_after} ms; wrong: {failed or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
