"""Nothing is left: not after an orderly end, a director's death, or the death of everything."""

import os
import signal

import harness
from harness import ProcessTest, until

STEPS = 400


class Leftovers(ProcessTest):
    def killed_all(self, *options):
        job = self.start("--steps", STEPS, *options)
        if options:
            job.event("checkpoint_written")
        else:
            job.event("generation_started")
        self.kill_all()
        self.assert_nothing_left()
        return job

    def test_orderly_end(self):
        """an orderly end leaves finished versions and nothing else"""
        result = self.run_job("--steps", STEPS, "--checkpoint-dir", "ck", "--checkpoint-every", 50,
                              "--keep", 2)
        self.assert_finished(result, STEPS)
        self.assertEqual(self.assert_versions_only(), [f"step-{s:012}" for s in (350, 400)])

    def test_everything_killed(self):
        """everything killed, without checkpoints; a fresh start is as the first would have been"""
        self.killed_all()
        self.assert_finished(self.run_job("--steps", STEPS), STEPS, self.clean_digest(STEPS))

    def test_everything_killed_with_checkpoints(self):
        """everything killed while checkpoints are written; a fresh start goes on from the newest"""
        options = ("--checkpoint-dir", "ck", "--checkpoint-every", 20)
        self.killed_all(*options)
        result = self.run_job("--steps", STEPS, *options)
        self.assert_finished(result, STEPS, self.clean_digest(STEPS))
        self.assertGreaterEqual(result.named("resumed")[0]["step"], 20)
        self.assertEqual(len(self.assert_versions_only()), 3)

    def test_director_killed(self):
        """the director killed from outside: its workers end by themselves, and say nothing"""
        job = self.start("--steps", 1000000, "--workers", 3, "--detect-after", "500ms")
        job.event("generation_started")
        workers = self.processes()
        self.assertEqual(len(workers), 4)
        job.send(signal.SIGKILL)
        result = job.end()
        self.assertEqual(result.code, -signal.SIGKILL)
        self.assert_nothing_left()
        self.assertEqual([line for line in job.lines("stderr") if "invariant" in line], [])

    def test_director_killed_while_workers_join(self):
        """the director killed before its workers have joined: they end too"""
        job = self.start("--steps", 1000000, "--workers", 4, "--detect-after", "500ms")
        job.event("worker_started", count=4)
        job.send(signal.SIGKILL)
        job.end()
        self.assert_nothing_left()

    def test_director_stopped_for_long(self):
        """a director that is silent for longer than the grace is gone for its workers; it ends once awake"""
        job = self.start("--steps", 1000000, "--detect-after", "250ms")
        job.event("generation_started")
        workers = list(job.workers().values())
        job.send(signal.SIGSTOP)
        until(lambda: all(harness.last_state(pid) in ("", "Z") for pid in workers), "the workers end")
        job.send(signal.SIGCONT)
        until(lambda: len(job.events()) and [e for e in job.events() if e["event"] == "failure_detected"],
              "the director notices")
        job.send(signal.SIGTERM)
        self.assertEqual(job.end().code, 128 + signal.SIGTERM)
        self.assert_nothing_left()

    def test_events_and_summary_of_a_killed_job(self):
        """a killed director leaves whole event lines and no half summary"""
        job = self.killed_all("--checkpoint-dir", "ck", "--checkpoint-every", 20)
        self.assertFalse(os.path.exists(job.summary_path))
        self.assertEqual([n for n in os.listdir(self.out) if n.endswith(".partial")], [])
        self.assertTrue(all("t" in e and "generation" in e for e in job.events()))


if __name__ == "__main__":
    harness.main()
