"""Message soak: processes that all talk to all, while paths are cut and processes killed.

Usage:  message_soak.py --program message_soak [--messages N] [--processes 8] [--strikes N] [--seed N]
Output: each strike a line, then the account; exit code 1 if it does not balance.
Judged: no message came out of order or twice; for each pair of processes, sent = received + returned, or else
        the sender was told of a down. What was in the memory of a killed process is reported by its down.
Strikes, drawn from the seed: kill (SIGKILL), cut (the fault path-error, after which the process leaves: an
incarnation is never reached again once its path has broken), leave (goodbye). Each struck one is replaced.
"""

import argparse
import os
import signal
import sys

from harness import seeded
from probes import DEADLINE_S, Late, Probe, Watch, now_ms, say, strike

KINDS = ("kill", "kill", "cut", "cut", "leave")


class Soak:
    def __init__(self, program, watch, random):
        self.program, self.watch, self.random = program, watch, random
        self.living, self.ended, self.accounts, self.killed = [], [], {}, set()
        self.fragile = {}  # process -> the peer that a cut of it breaks with
        self.counts = {kind: 0 for kind in KINDS}

    def spawn(self):
        name = f"process {len(self.living) + len(self.ended)}"
        return Probe(name, [self.program, "500"], self.watch)

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

    def received(self):
        def of(one):
            with one._fresh:
                last = [r["received"] for r in one.reports if r["event"] == "progress"]
                return last[-1] if last else 0
        return sum(of(one) for one in self.living + self.ended)

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
        one = self.random.choice(self.living)
        if kind == "cut" and self.fragile[one] not in self.living:
            kind = "leave"
        self.counts[kind] += 1
        say(f"  {self.received()} received: {kind} {one.name}" +
            (f" - {self.fragile[one].name}" if kind == "cut" else ""))
        others = [o for o in self.living if o is not one]
        if kind == "kill":
            strike(one, signal.SIGKILL)
            one.end()
            self.killed.add(one.incarnation)
            for other in others:
                other.tell(f"lost {one.incarnation}")
        else:
            if kind == "cut":
                one.tell("cut")
                one.wait("pair_lost", peer=self.fragile[one].incarnation)
                self.fragile[one].wait("pair_lost", peer=one.incarnation)
            self.take_account(one)
            one.tell("quit")
            if one.end() != 0:
                raise Late(f"{one.name} ended with {one.process.returncode}: {one.errors()}")
        self.living.remove(one)
        self.ended.append(one)
        successor = self.spawn()
        self.compose(successor, others)
        for other in others:
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
        wrong, sum_of = [], {"sent": 0, "received": 0, "returned": 0, "reported by a down": 0}
        for one in self.living + self.ended:
            for report in [r for r in one.reports if r["event"] == "disorder"]:
                wrong.append(f"{one.name}: number {report['number']} after {report['last']}")
        for sender, account in self.accounts.items():
            for receiver, said in account["said"].items():
                self.balance_pair(sender, receiver, said, wrong, sum_of)
        return wrong, sum_of

    def balance_pair(self, sender, receiver, said, wrong, sum_of):
        pair = f"{sender[:8]} -> {receiver[:8]}"
        sum_of["sent"] += said["sent"]
        sum_of["returned"] += said["returned"]
        known = self.accounts.get(receiver)
        if known is None:
            if not said["down"]:
                wrong.append(f"{pair}: the receiver was killed, and no down was told")
            sum_of["reported by a down"] += said["sent"] - said["returned"]
            return
        received = known["heard"].get(sender, 0)
        sum_of["received"] += received
        missing = said["sent"] - received - said["returned"]
        if missing < 0:
            wrong.append(f"{pair}: {-missing} were both received and returned: {said}, {received}")
        elif missing and not said["down"]:
            wrong.append(f"{pair}: {missing} of {said['sent']} are lost in silence")
        elif not said["fenced"] and not said["down"]:
            wrong.append(f"{pair}: the last question has no answer")
        sum_of["reported by a down"] += max(missing, 0)


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
        except Late as late:
            say(f"FAIL: {late}")
            return 1
    span_s = (now_ms() - begun) / 1000
    say(f"{total} messages received by {chosen.processes} processes and {len(soak.ended)} predecessors in "
        f"{span_s:.1f} s ({total / span_s:.0f}/s); strikes {soak.counts}")
    say(f"accounts of the {len(soak.accounts)} that could give one: {sums}")
    for line in wrong[:20]:
        say(f"WRONG: {line}")
    say(f"wrong: {len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
