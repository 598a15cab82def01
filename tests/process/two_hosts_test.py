"""A job on two hosts: a director with a worker, and a worker that joins from elsewhere.

The joiner shares nothing with the director's host (hosts.py).
Exit code 77 (CTest: skipped) where namespaces are not permitted.
"""

import gzip
import os
import shutil
import signal
import sys

import harness
from harness import say, until
from hosts import DATA, DETECT_MS, LONG, HostsTest
from namespaces import permitted

STEPS = 600


class TwoHosts(HostsTest):
    def test_one_digest(self):
        """the digest of a job on one host"""
        director = self.direct(STEPS)
        joiner = self.join(director)
        result = director.end()
        self.assert_finished(result, STEPS, self.clean_digest(STEPS))
        self.assertEqual(joiner.process.wait(harness.DEADLINE_S), 0)
        self.assert_failures(result, [])
        self.by(result, "ring")
        self.assertEqual(result.named("generation_started")[0]["collective_why"],
                         "no two workers share a host")

    def replaced(self, *options):
        """A job whose worker elsewhere is killed, and another one comes: the digest of a run without that"""
        director = self.direct(LONG, *options)
        joiner = self.join(director)
        self.in_steps(director)
        self.kill(joiner)
        director.event("failure_detected")
        self.join(director)
        result = director.end()
        self.assert_finished(result, LONG, self.clean_digest(LONG, *options))
        self.by(result, "ring", "ring")
        return result

    def test_killed(self):
        """the worker elsewhere is killed and another one comes: the digest of a run without it"""
        result = self.replaced()
        self.assertEqual([f["source"] for f in result.failures], ["peer"])

    def test_top_k(self):
        """the same with --top-k: the residuals of the worker that died are those of the newest whole state"""
        result = self.replaced("--top-k", "0.05")
        self.assertIn(result.failures[0]["source"], ("peer", "disk"))

    def test_goes_and_comes(self):
        """nobody comes instead: the job goes on in memory; later one does: over the network again"""
        director = self.direct(LONG, detect_ms=1000)  # members_wait is 60 times that
        joiner = self.join(director)
        self.in_steps(director)
        self.kill(joiner)
        director.event("first_step_applied", 2)  # after members_wait
        self.join(director)
        result = director.end()
        self.assert_finished(result, LONG, self.clean_digest(LONG))
        self.by(result, "ring", "shm", "ring")

    def test_short_cut(self):
        """a cut for less than detect_after is bridged: nobody is lost"""
        director = self.direct(LONG)
        self.join(director)
        self.in_steps(director)
        self.cable.cut_for(DETECT_MS / 4)
        result = director.end()
        self.assertGreater(self.cable.cut_packets(), 0)
        self.assert_finished(result, LONG, self.clean_digest(LONG))
        self.assert_failures(result, [])
        self.by(result, "ring")

    def test_long_cut(self):
        """a longer one: the worker behind it is lost, ends itself, and another one comes"""
        director = self.direct(LONG)
        joiner = self.join(director)
        self.in_steps(director)
        self.cable.plug(False)
        director.event("failure_detected")
        until(lambda: joiner.process.poll() is not None, "the worker behind the cut has ended")
        self.cable.plug(True)
        self.join(director)
        result = director.end()
        self.assert_finished(result, LONG, self.clean_digest(LONG))
        self.assertIn(result.failures[0]["kind"], ("stop", "path-lost", "path_lost"))
        self.by(result, "ring", "ring")

    def test_apart(self):
        """two workers cannot hear each other, but the director hears both: one of them is replaced"""
        director = self.direct(LONG, joiners=2)
        self.join(director)
        self.join(director)
        self.in_steps(director)
        self.cable.drop_towards("b", "lo")  # what they tell each other, and nothing else
        failed = director.event("failure_detected")
        self.assertIn("of the other ranks cannot be reached from it", failed["cause"])
        self.cable.pass_again("b")
        self.join(director)
        result = director.end()
        self.assert_finished(result, LONG, self.clean_digest(LONG))
        self.assertEqual(len(result.failures), 1)
        self.by(result, "ring", "ring")

    def test_other_data(self):
        """a host whose dataset differs in one label is refused its part, by name"""
        other = os.path.join(self.out, "data")
        shutil.copytree(DATA, other)
        labels = os.path.join(other, "train-labels-idx1-ubyte.gz")
        with gzip.open(labels) as file:
            changed = bytearray(file.read())
        changed[-1] = (changed[-1] + 1) % 10
        os.remove(labels)
        with gzip.open(labels, "wb") as file:
            file.write(changed)
        director = self.direct(STEPS)
        joiner = self.join(director, instead=other)
        self.assertEqual(joiner.process.wait(harness.DEADLINE_S), 5)
        self.assertIn("has the digest", joiner.lines("stderr")[-1])
        director.event("failure_detected")  # its place is free again
        self.join(director)
        self.assert_finished(director.end(), STEPS, self.clean_digest(STEPS))

    def test_memory_demanded(self):
        """a job that sums in memory refuses who shares none"""
        director = self.direct(STEPS, "--collective", "shm")
        joiner = self.join(director)
        self.assertEqual(joiner.process.wait(harness.DEADLINE_S), 7)
        self.assertIn("--collective shm", joiner.lines("stderr")[-1])
        director.send(signal.SIGTERM)
        director.end()


if __name__ == "__main__":
    missing = permitted()
    if missing:
        say(f"SKIPPED: {missing}")
        sys.exit(77)
    harness.main()
