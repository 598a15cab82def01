"""Message soak: processes that all talk to all, while paths are cut and processes killed.

Usage:  message_soak.py --program message_soak [--messages N] [--processes 8] [--strikes N] [--seed N]
Output: each strike a line, then the account; exit code 1 if it does not balance.
Judged: no message came out of order or twice. Two processes that have not lost each other: every message that
        was sent has been received, or came back, however often their path was cut; nobody was told of a down.
        Where one of them was killed or has left, the other was told of a down, which covers what is missing.
Strikes, drawn from the seed: kill (SIGKILL), leave (goodbye), cut (the fault path-error: of each process, the
path to one other fails). Who was killed or has left is replaced.
"""

import argparse
import itertools
import os
import signal
import sys
from collections import Counter

from harness import seeded, until
from probes import DEADLINE_S, Late, Probe, Watch, now_ms, say, strike

DETECT_AFTER_MS = "5000"  # no process of a busy machine is slower
KINDS = ("kill", "kill", "cut", "cut", "leave")


class Soak:
    def __init__(self, program, watch, random):
        self.program, self.watch, self.random = program, watch, random
        self.living, self.ended, self.accounts = [], [], {}
        self.fragile = {}  # process -> the peer that a cut of it breaks with
        self.counts = {kind: 0 for kind in KINDS}

    def spawn(self):
        return Probe(f"p{len(self.watch.probes)}", [self.program, DETECT_AFTER_MS], self.watch)

    def compose(self, one, others):
        self.fragile[one] = self.random.choice(others)
        one.tell(f"compose {self.fragile[one].incarnation}")
        one.wait("composed")

    @staticmethod
    def introduce(one, other):
        one.tell(f"peer {other.incarnation} {other.address}")
        other.tell(f"peer {one.incarnation} {one.address}")

    def begin(self, count):
        self.living = [self.spawn() for _ in range(count)]
        for one in self.living:
            self.compose(one, [o for o in self.living if o is not one])
        for i, one in enumerate(self.living):
            for other in self.living[:i]:
                self.introduce(one, other)
        for one in self.living:
            one.tell("start")

    @staticmethod
    def progress(one):
        return one.latest("progress", {"received": 0, "interrupted": 0})

    def received(self):
        return sum(self.progress(one)["received"] for one in self.living + self.ended)

    def until_received(self, total):
        """Waits for progress; a standstill is a failure."""
        seen, since = self.received(), now_ms()
        while seen < total:
            leader = self.living[0]
            leader.wait("progress", leader.count("progress") + 1)
            fresh = self.received()
            if fresh > seen:
                seen, since = fresh, now_ms()
            elif now_ms() - since > DEADLINE_S * 1000:
                raise Late(f"nothing has arrived anywhere for {DEADLINE_S:g} s, at {seen} messages")

    # --- strikes ---

    def strike(self):
        kind = self.random.choice(KINDS)
        self.counts[kind] += 1
        if kind == "cut":
            return self.cut([one for one in self.living if self.fragile[one] in self.living])
        one = self.random.choice(self.living)
        say(f"  {self.received()} received: {kind} {one.name}")
        self.end(one, kind)
        return self.replace(one)

    def cut(self, whole):
        say(f"  {self.received()} received: cut " +
            ", ".join(f"{one.name} - {self.fragile[one].name}" for one in whole))
        before = [self.progress(one)["interrupted"] for one in whole]
        for one in whole:
            one.tell("cut")
        for one, count in zip(whole, before):
            until(lambda: self.progress(one)["interrupted"] > count, f"{one.name} breaks a path", DEADLINE_S)

    def end(self, one, kind):
        if kind == "kill":
            strike(one, signal.SIGKILL)
            one.end()
            return
        self.take_account(one)
        one.tell("quit")
        if one.end() != 0:
            raise Late(f"{one.name} ended with {one.process.returncode}: {one.errors()}")

    def replace(self, one):
        self.living.remove(one)
        self.ended.append(one)
        successor = self.spawn()
        self.compose(successor, self.living)
        for other in self.living:
            self.introduce(successor, other)
        successor.tell("start")
        self.living.append(successor)

    def take_account(self, one):
        one.tell("stop")
        one.wait("stopped", one.count("stopped") + 1)
        one.tell("account")
        self.accounts[one.incarnation] = one.wait("account")

    def finish(self):
        for one in self.living:
            one.tell("stop")
        for one in self.living:
            one.wait("stopped")
        for one in self.living:  # every fence has passed: nothing numbered is under way
            one.tell("account")
            self.accounts[one.incarnation] = one.wait("account")
        for one in self.living:
            one.tell("quit")
        for one in self.living:
            if one.end() != 0:
                raise Late(f"{one.name} ended with {one.process.returncode}: {one.errors()}")

    # --- the account ---

    def balance(self):
        wrong, sum_of = [], Counter()
        for one in self.living + self.ended:
            wrong += [f"{one.name}: number {r['number']} after {r['last']}"
                      for r in one.reports if r["event"] == "disorder"]
        living = {one.incarnation for one in self.living}
        for one in self.living:  # after its account it is told of those who leave at the end
            before = itertools.takewhile(lambda r: r["event"] != "account", one.reports)
            wrong += [f"{one.name} was told of {r['peer'][:8]}, which lives: {r['text']}"
                      for r in before if r["event"] == "session_ended" and r["peer"] in living]
        for sender, account in self.accounts.items():
            sum_of.update({f"paths {what}": count for what, count in account["paths"].items()})
            for receiver, said in account["said"].items():
                self.balance_pair(sender, receiver, said, wrong, sum_of)
        if sum_of["paths malformed"]:
            wrong.append(f"{sum_of['paths malformed']} frames of sessions broke the rules")
        return wrong, sum_of

    def balance_pair(self, sender, receiver, said, wrong, sum_of):
        """With a down, what came back may have arrived, too: its fate was unknown to its sender."""
        pair = f"{sender[:8]} -> {receiver[:8]}"
        known = receiver in self.accounts
        received = self.accounts[receiver]["heard"].get(sender, 0) if known else 0
        missing = said["sent"] - received - said["returned"]
        sum_of.update({"sent": said["sent"], "received": received, "returned": said["returned"]})
        if said["down"]:
            sum_of["covered by a down"] += max(missing, 0)
        elif not said["fenced"]:
            wrong.append(f"{pair}: neither is the last question answered, nor was a down told")
        elif known and missing:
            wrong.append(f"{pair}: sent {said['sent']}, received {received}, returned {said['returned']}")


def main():
    options = argparse.ArgumentParser(description="Messages between processes that are cut off and killed.")
    options.add_argument("--program", required=True, help="the message_soak to use")
    options.add_argument("--messages", type=int, default=10_000_000, metavar="N", help="to be received")
    options.add_argument("--processes", type=int, default=8, metavar="N")
    options.add_argument("--strikes", type=int, default=100, metavar="N")
    options.add_argument("--seed", type=int, default=1, metavar="N")
    chosen = options.parse_args()
    begun = now_ms()
    with Watch() as watch:
        soak = Soak(os.path.abspath(chosen.program), watch, seeded(chosen.seed))
        try:
            soak.begin(chosen.processes)
            for number in range(1, chosen.strikes + 1):
                soak.until_received(chosen.messages * number // (chosen.strikes + 1))
                soak.strike()
            soak.until_received(chosen.messages)
            total = soak.received()
            soak.finish()
            wrong, sums = soak.balance()
            wrong += [f"left behind: {what}" for what in watch.left_behind()]
        except AssertionError as late:
            say(f"FAIL: {late}")
            return 1
    span_s = (now_ms() - begun) / 1000
    say(f"{total} messages received by {chosen.processes} processes and {len(soak.ended)} predecessors in "
        f"{span_s:.1f} s ({total / span_s:.0f}/s); strikes {soak.counts}")
    say(f"accounts of the {len(soak.accounts)} that could give one: {dict(sums)}")
    for line in wrong[:20]:
        say(f"WRONG: {line}")
    say(f"wrong: {len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
