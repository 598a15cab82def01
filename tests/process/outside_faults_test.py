"""Faults from outside, which no plan knows: signals to worker processes at moments of our choosing."""

import os
import signal

import harness
from harness import ProcessTest, seeded, until

STEPS = 600


class OutsideFaults(ProcessTest):
    def assert_healed(self, job, kinds, steps=STEPS):
        result = job.end()
        self.assert_finished(result, steps, self.clean_digest(steps))
        self.assertEqual([f["kind"] for f in result.failures], kinds)
        self.assertEqual([f for f in result.failures if not f["cause"] or f["recovered_ms"] is None], [])
        self.assertEqual(len(result.named("failure_detected")), len(kinds))
        self.assert_nothing_left()
        return result

    def saving(self, steps, *options):
        """A job whose checkpoints tell how far it is."""
        return self.start("--steps", steps, "--checkpoint-dir", "ck", "--checkpoint-every", 50, *options)

    def test_kill(self):
        """SIGKILL to a worker's process"""
        job = self.saving(STEPS)
        job.event("checkpoint_written")
        job.strike(1)
        result = self.assert_healed(job, ["kill"])
        self.assertEqual(result.failures[0]["source"], "peer")
        self.assertLessEqual(result.failures[0]["steps_lost"], 1)

    def test_stop(self):
        """SIGSTOP to a worker's process: found by its silence"""
        job = self.saving(STEPS, "--detect-after", "1s")
        job.event("checkpoint_written")
        pid = job.strike(1, signal.SIGSTOP)
        job.event("failure_detected", rank=1)
        result = self.assert_healed(job, ["stop"])
        self.assertEqual(harness.last_state(pid), "")
        self.assertEqual(result.failures[0]["source"], "peer")

    def test_kill_in_the_first_generation(self):
        """killed before the first step: as soon as it was started, and once it is ready"""
        for event in ("worker_started", "worker_ready"):
            job = self.start("--steps", STEPS, "--workers", 3)
            job.event(event, rank=1)
            job.strike(1)
            self.assert_healed(job, ["kill"])

    def test_kill_the_replacement(self):
        """the replacement is killed as well: before it has joined, then while it is being healed"""
        job = self.saving(STEPS, "--workers", 3)
        job.event("checkpoint_written")
        job.strike(2)
        job.event("worker_started", count=2, rank=2)
        job.strike(2)
        job.event("worker_started", count=3, rank=2)
        job.event("worker_ready", count=2, rank=2)
        job.strike(2)
        self.assert_healed(job, ["kill"] * 3)

    def test_kill_the_source(self):
        """the peer that heals a replacement is killed meanwhile"""
        job = self.saving(STEPS, "--workers", 3)
        job.event("checkpoint_written")
        job.strike(2)
        job.event("worker_ready", count=2, rank=2)
        job.strike(0)
        result = self.assert_healed(job, ["kill"] * 2)
        self.assertTrue(all(f["steps_lost"] <= 1 for f in result.failures), result.failures)

    def test_all_killed_from_outside(self):
        """every worker killed at once: from the newest checkpoint"""
        job = self.saving(STEPS)
        job.event("checkpoint_written")
        for rank in (0, 1):
            job.strike(rank)
        result = self.assert_healed(job, ["kill"] * 2)
        self.assertEqual({f["source"] for f in result.failures}, {"disk"})
        self.assert_versions_only()

    def test_random_kills(self):
        """eight random kills of three workers in 2000 steps"""
        steps, kills = 2000, 8
        self.clean_digest(steps)
        choose = seeded(20261129)
        job = self.saving(steps, "--workers", 3)
        written = 0
        for done in range(kills):
            written += choose.randint(1, 4)
            job.event("checkpoint_written", count=written)
            rank = choose.randrange(3)
            pid = job.strike(rank)
            job.event("failure_detected", pid=pid)
            until(lambda: len([e for e in job.events() if "recovered_ms" in e]) > done, "training again")
        result = self.assert_healed(job, ["kill"] * kills, steps)
        self.assertTrue(all(f["source"] == "peer" and f["steps_lost"] <= 1 for f in result.failures))
        self.assertEqual(len({f["pid"] for f in result.named("failure_detected")}), kills)


class Growth(ProcessTest):
    def test_recoveries_leak_nothing(self):
        """twenty recoveries: the director's descriptors, threads and memory do not grow"""
        job = self.start("--steps", 1000000, "--workers", 4)
        job.event("generation_started")

        def size():
            with open(f"/proc/{job.pid}/status", encoding="ascii") as file:
                fields = dict(line.split(":", 1) for line in file.read().splitlines())
            return {
                "descriptors": len(os.listdir(f"/proc/{job.pid}/fd")),
                "threads": int(fields["Threads"]),
                "memory_kib": int(fields["VmRSS"].split()[0]),
                "mappings": len(open(f"/proc/{job.pid}/maps", encoding="ascii").readlines()),
            }

        sizes = []
        for done in range(20):
            pid = job.strike(done % 4)
            job.event("failure_detected", pid=pid)
            until(lambda: len([e for e in job.events() if "recovered_ms" in e]) > done, "training again")
            sizes.append(size())
            harness.say(f"    after {done + 1} recoveries: {sizes[-1]}")
        survivor = job.workers()[0]
        worker_descriptors = len(os.listdir(f"/proc/{survivor}/fd"))
        harness.say(f"    descriptors of worker 0, which saw three recoveries: {worker_descriptors}")
        job.send(signal.SIGTERM)
        result = job.end()
        self.assertEqual(len(result.failures), 20)
        self.assertTrue(result.summary["survivors_kept"])
        early, late = sizes[4], sizes[-1]
        self.assertLessEqual(late["descriptors"], early["descriptors"] + 2)
        self.assertLessEqual(late["mappings"], early["mappings"] + 8)
        self.assertEqual(late["threads"], early["threads"])
        if harness.SLOWNESS == 1:  # sanitizers keep freed memory; they look for leaks themselves
            self.assertLessEqual(late["memory_kib"], early["memory_kib"] + 4096)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
