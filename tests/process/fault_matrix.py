"""Fault matrix: what each of two processes is told when the other one fails, in every stage of their talk.

Usage:  fault_matrix.py --program fault_probe [--lanes tcp,shm] [--detect-after MS] [--only STAGE/FAULT]
                        [--table [FILE]]
Output: a line for each cell, then the Markdown table; exit code 1 if a cell of tcp is wrong.
Judged: who was told what, and that nothing is left behind and nobody hangs. Times are shown; only with
        --table a detection later than 2 x detect_after is wrong, too. Shared memory lanes are reported,
        never judged.
"""

import argparse
import os
import signal
import sys

from probes import (Late, Probe, Watch, hold, in_words, kill_quietly, now_ms, say, strike)

STAGES = ("wire-up", "idle", "waiting", "stream", "bulk")
FAULTS = ("SIGKILL", "SIGSTOP, SIGCONT", "SIGSTOP for ever", "orderly close")
LANES_JUDGED = ("tcp",)

# What the survivor must have been told, whatever else is allowed: (what, codes).
GONE = {"path_lost", "refused", "aborted", "process_died"}
MUST = {
    "idle": {"down"},
    "waiting": {"down", "request_failed"},
    "stream": {"down"},
    "bulk": {"down", "bulk_out_failed", "bulk_in_failed"},
}
ONCE = ("path_lost", "verdict", "down")


class Cell:
    def __init__(self, lanes, stage, fault):
        self.lanes, self.stage, self.fault = lanes, stage, fault
        self.wrong, self.survivor, self.struck, self.left = [], "", "", "nothing"
        self.detected_ms = None

    @property
    def name(self):
        return f"{self.lanes} / {self.stage} / {self.fault}"

    def row(self):
        at = "-" if self.detected_ms is None else f"{self.detected_ms:.0f}"
        verdict = "; ".join(self.wrong) if self.wrong else "as it should"
        return [self.lanes, self.stage, self.fault, self.survivor or "nothing", at,
                self.struck or "nothing", self.left, verdict]


class Matrix:
    def __init__(self, program, detect_ms):
        self.program, self.detect_ms = program, detect_ms

    def run(self, lanes, stage, fault):
        cell = Cell(lanes, stage, fault)
        with Watch() as watch:
            try:
                a, b = [Probe(name, [self.program, lanes, "lo", str(self.detect_ms)], watch)
                        for name in ("survivor", "struck")]
                since = (self.wire_up if stage == "wire-up" else self.talk)(cell, a, b)
                self.judge(cell, a, b, since)
                self.finish(cell, a, b, watch, since)
            except Late as late:
                cell.wrong.append(f"HANGS: {late}")
        say(f"{'ok  ' if not cell.wrong else 'FAIL'} {cell.name}: {' | '.join(cell.row()[3:])}")
        return cell

    # --- the stages; each returns when the fault struck ---

    def wire_up(self, cell, a, b):
        """The one to be struck stands still, so that nothing is through when the fault comes."""
        to_b, to_a = (f"connect {p.incarnation} {p.address}" for p in (b, a))
        since = strike(b, signal.SIGSTOP)
        a.tell(to_b)
        a.wait("connecting")
        if cell.fault == "SIGKILL":
            since = strike(b, signal.SIGKILL)
        elif cell.fault == "orderly close":
            b.tell(to_a, "goodbye", "quit")
            since = strike(b, signal.SIGCONT)
        elif cell.fault == "SIGSTOP, SIGCONT":
            hold(self.detect_ms / 2)
            strike(b, signal.SIGCONT)
            b.tell(to_a)
            for probe in (a, b):
                probe.wait("open")
            self.still_talks(a, b)
        return since

    def talk(self, cell, a, b):
        self.begin(cell.stage, a, b)
        return self.fail(cell, a, b)

    @staticmethod
    def begin(stage, a, b):
        if stage == "bulk":
            for probe in (a, b):
                probe.tell("room")
            for probe in (a, b):
                probe.wait("room")
        Matrix.connect(a, b)
        for probe in (a, b):
            probe.wait("open")
            probe.tell("watch", "ask")
            probe.wait("answered")
        begin = {"waiting": ["keep", "ask"], "stream": ["stream"], "bulk": ["bulk"]}.get(stage, [])
        sign = {"waiting": ("answered", 2), "stream": ("streaming", 1), "bulk": ("bulk_started", 1)}
        for probe in (a, b):
            probe.tell(*begin)
        for probe in (a, b):
            if stage in sign:
                event, count = sign[stage]
                probe.wait(event, count)

    @staticmethod
    def connect(a, b):
        for one, other in ((a, b), (b, a)):
            one.tell(f"connect {other.incarnation} {other.address}")

    def fail(self, cell, a, b):
        if cell.fault == "SIGKILL":
            return strike(b, signal.SIGKILL)
        if cell.fault == "orderly close":
            since = now_ms()
            b.tell("goodbye", "quit")
            return since
        since = strike(b, signal.SIGSTOP)
        if cell.fault == "SIGSTOP, SIGCONT":
            hold(self.detect_ms / 2)
            strike(b, signal.SIGCONT)
            self.still_talks(a, b)
            if cell.stage in ("stream", "bulk"):
                event = {"stream": "streaming", "bulk": "bulk_sent"}[cell.stage]
                for probe in (a, b):
                    probe.wait(event, probe.count(event) + 2)
        return since

    @staticmethod
    def still_talks(a, b):
        for probe in (a, b):
            before = probe.count("answered")
            probe.tell("ask")
            probe.wait("answered", before + 1)

    # --- judging ---

    def judge(self, cell, a, b, since):
        chosen = {r["lanes"] for r in a.reports if r["event"] == "open"}
        if any(("memory" in one) != (cell.lanes == "shm") for one in chosen):
            cell.wrong.append(f"UCX chose {chosen}")
        if cell.fault == "SIGSTOP, SIGCONT":
            self.say_told(cell, a, b, since)
            for probe in (a, b):
                if probe.told():
                    cell.wrong.append(f"{probe.name} was told something")
            return
        cell.detected_ms = a.decision()["t"] - since
        for what in MUST.get(cell.stage, set()):
            a.wait("told", what=what)
        codes = {"actor_stopped"} if cell.fault == "orderly close" else GONE
        for report in a.told():
            if report["code"] not in codes:
                cell.wrong.append(f"{report['what']} has code {report['code']}")
        self.say_told(cell, a, b, since)

    @staticmethod
    def say_told(cell, a, b, since):
        for what in ONCE:
            if a.count("told", what=what) > 1:
                cell.wrong.append(f"{what} was told more than once")
        if a.count("disorder") + b.count("disorder"):
            cell.wrong.append("messages came out of order")
        cell.survivor, cell.struck = in_words(a.told(), since), in_words(b.told(), since)
        if cell.fault in ("SIGKILL", "SIGSTOP for ever"):
            cell.struck = "(it is gone)" if cell.fault == "SIGKILL" else "(it stands still)"

    @staticmethod
    def finish(cell, a, b, watch, since):
        if cell.fault in ("SIGKILL", "SIGSTOP for ever"):
            kill_quietly(b)
        else:
            b.tell("quit")
            if b.end() != 0:
                cell.wrong.append(f"struck ended with {b.process.returncode}: {b.errors()}")
        if cell.fault == "orderly close":  # it goes on reporting until it has left
            cell.struck = in_words(b.told(), since)
        a.tell("quit")
        code = a.end()
        if code != 0:
            cell.wrong.append(f"survivor ended with {code}: {a.errors()}")
        last = a.wait("left")
        open_ones = f"requests {last['requests']}, handles {last['proxies']}"
        if cell.fault != "SIGSTOP, SIGCONT" and (last["requests"] or last["proxies"]):
            cell.wrong.append(f"the survivor still held {open_ones}")
        left = watch.left_behind()
        if left:
            cell.left = ", ".join(left)
            cell.wrong.append("something was left behind")


HEAD = ["lanes", "stage", "fault", "survivor was told (code), after ms", "decided after ms",
        "struck side was told", "left behind", "verdict"]


def markdown(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def main():
    options = argparse.ArgumentParser(description="The fault matrix between two processes.")
    options.add_argument("--program", required=True, help="the fault_probe to use")
    options.add_argument("--lanes", default="tcp", help="tcp, shm, or both with a comma")
    options.add_argument("--detect-after", type=int, default=500, metavar="MS")
    options.add_argument("--only", default="", metavar="TEXT", help="cells whose name has it")
    options.add_argument("--table", nargs="?", const="-", metavar="FILE", help="write the table; judge times")
    chosen = options.parse_args()
    matrix = Matrix(os.path.abspath(chosen.program), chosen.detect_after)
    wanted = [(lanes, stage, fault) for lanes in chosen.lanes.split(",") for stage in STAGES
              for fault in FAULTS if chosen.only in f"{lanes} / {stage} / {fault}"]
    cells = [matrix.run(*one) for one in wanted]
    for cell in cells:
        if chosen.table and cell.detected_ms is not None and cell.detected_ms > 2 * chosen.detect_after:
            cell.wrong.append("later than 2 x detect_after")
    table = markdown(HEAD, [cell.row() for cell in cells])
    if chosen.table and chosen.table != "-":
        with open(chosen.table, "w", encoding="utf-8") as file:
            file.write(table + "\n")
    else:
        say("\n" + table)
    failed = [cell.name for cell in cells if cell.wrong and cell.lanes in LANES_JUDGED]
    say(f"\n{len(cells)} cells, detect_after {chosen.detect_after} ms; wrong: {failed or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
