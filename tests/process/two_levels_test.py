"""A job on two hosts with two workers each: sums in memory inside each, over the cable between them.

Two workers of the director's host, and two that join from a host of their own (hosts.py).
Exit code 77 (CTest: skipped) where namespaces are not permitted.
"""

import shutil
import signal
import sys

import harness
from harness import say, until
from hosts import LONG, Host, HostsTest
from namespaces import permitted

STEPS = 600
BOTH = "shm+ring"


class TwoLevels(HostsTest):
    def setUp(self):
        super().setUp()
        self.host = Host(self)

    def start_all(self, steps, *options, local=2, joiners=2):
        director = self.direct(steps, *options, joiners=joiners, local=local)
        return director, [self.join(director, host=self.host) for _ in range(joiners)]

    def test_one_digest(self):
        """the digest of a job on one host"""
        director, joiners = self.start_all(STEPS)
        result = director.end()
        self.assert_finished(result, STEPS, self.clean_digest(STEPS))
        self.assertEqual([joiner.process.wait(harness.DEADLINE_S) for joiner in joiners], [0, 0])
        self.assert_failures(result, [])
        self.by(result, BOTH)

    def test_rounded_in_buckets(self):
        """rounded gradients in small buckets: the digest of such a job on one host"""
        options = ("--wire", "bfloat16", "--bucket", "64KiB")
        director, _ = self.start_all(STEPS, *options)
        result = director.end()
        self.assert_finished(result, STEPS, self.clean_digest(STEPS, *options))
        self.by(result, BOTH)

    def test_flat(self):
        """the network between all, demanded: the same digest"""
        director, _ = self.start_all(STEPS, "--collective", "ring")
        result = director.end()
        self.assert_finished(result, STEPS, self.clean_digest(STEPS))
        self.by(result, "ring")

    def test_uneven(self):
        """2 + 1 workers: the director's host owns two nodes of the shard tree"""
        director, _ = self.start_all(STEPS, joiners=1)
        result = director.end()
        self.assert_finished(result, STEPS, self.clean_digest(STEPS))
        self.by(result, BOTH)

    def test_uneven_rounded(self):
        """the same with rounded gradients"""
        director, _ = self.start_all(STEPS, "--wire", "bfloat16", joiners=1)
        result = director.end()
        self.assert_finished(result, STEPS, self.clean_digest(STEPS, "--wire", "bfloat16"))
        self.by(result, BOTH)

    def test_uneven_killed(self):
        """1 + 2 workers, two nodes each: the one that speaks for the other host is killed, and replaced"""
        director, joiners = self.start_all(LONG, local=1)
        self.in_steps(director)
        self.kill(joiners[0])
        director.event("failure_detected")
        self.join(director, host=self.host)
        result = director.end()
        self.assert_finished(result, LONG, self.clean_digest(LONG))
        self.by(result, BOTH, BOTH)

    def test_top_k(self):
        """--top-k has rank groups, which two levels have not: the network between all, and why"""
        options = ("--top-k", "0.05")
        director, _ = self.start_all(STEPS, *options)
        result = director.end()
        self.assert_finished(result, STEPS, self.clean_digest(STEPS, *options))
        self.by(result, "ring")
        self.assertEqual(result.named("generation_started")[0]["collective_why"],
                         "the job has rank groups, which two levels have not")

    def test_killed(self):
        """either worker of the other host is killed, and replaced: the first one speaks for its host"""
        director, joiners = self.start_all(LONG)
        self.in_steps(director)
        for number, joiner in enumerate(joiners, 1):
            self.kill(joiner)
            director.event("failure_detected", number)
            self.join(director, host=self.host)
            director.event("first_step_applied", number + 1)
        result = director.end()
        self.assert_finished(result, LONG, self.clean_digest(LONG))
        self.assertEqual([f["source"] for f in result.failures], ["peer", "peer"])
        self.by(result, BOTH, BOTH, BOTH)

    def test_stopped(self):
        """a worker of the director's host stands still: nobody waits for it longer than for its lease"""
        director, _ = self.start_all(LONG)
        self.in_steps(director)
        director.strike(0, signal.SIGSTOP)
        result = director.end()
        self.assert_finished(result, LONG, self.clean_digest(LONG))
        self.assertEqual([f["kind"] for f in result.failures], ["stop"])
        self.by(result, BOTH, BOTH)

    def test_deaf(self):
        """1 + 2 workers: the one that is alone hears nobody any more, and it alone is replaced"""
        director, _ = self.start_all(STEPS, "--fault", "cut:worker=0@step=50,way=in", local=1)
        result = director.end()
        self.assert_finished(result, STEPS, self.clean_digest(STEPS))
        self.assertEqual([(f["kind"], f["rank"]) for f in result.failures], [("path-lost", 0)])
        self.by(result, BOTH, BOTH)

    def test_cut(self):
        """the other host is cut off for longer than a lease: its workers end, and two others come"""
        director, joiners = self.start_all(LONG)
        self.in_steps(director)
        self.cable.plug(False)
        director.event("failure_detected", 2)
        until(lambda: all(joiner.process.poll() is not None for joiner in joiners),
              "the workers behind the cut have ended")
        self.cable.plug(True)
        for _ in joiners:
            self.join(director, host=self.host)
        result = director.end()
        self.assert_finished(result, LONG, self.clean_digest(LONG))
        self.assertEqual(len(result.failures), 2)
        self.by(result, BOTH, BOTH)


if __name__ == "__main__":
    missing = permitted()
    if not missing and shutil.which("nsenter") is None:
        missing = "'nsenter' is not installed (package util-linux)"
    if missing:
        say(f"SKIPPED: {missing}")
        sys.exit(77)
    harness.main()
