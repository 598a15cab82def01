"""The flight recorder of real processes: after a kill or a stop `troupe flight` names the rank."""

import json
import os
import signal
import subprocess

import harness
from harness import ProcessTest, until

STEPS = 400


class Flight(ProcessTest):
    kept_in_work = {"ck", "flight"}

    def recorded(self, steps, *options):
        """A job that keeps dumps, and whose checkpoints tell how far it is."""
        return self.start("--steps", steps, "--checkpoint-dir", "ck", "--checkpoint-every", 50,
                          "--flight", "flight", *options)

    def look(self, expected_code):
        tool = os.path.join(os.path.dirname(harness.program), "troupe")
        lines = subprocess.run([tool, "flight", "flight"], cwd=self.work, capture_output=True, text=True)
        harness.say("    " + (lines.stdout + lines.stderr).strip())
        self.assertEqual(lines.returncode, expected_code, lines)
        report = subprocess.run([tool, "flight", "flight", "--json"], cwd=self.work, capture_output=True,
                                text=True)
        self.assertEqual(report.returncode, expected_code)
        return lines.stdout.splitlines(), json.loads(report.stdout)

    def assert_names(self, rank):
        lines, report = self.look(1)
        first = report["generations"][0]
        self.assertEqual(first["ranks_named"], [rank], report)
        self.assertIn(f"rank {rank} ", lines[0])
        self.assertEqual({one["by"] for one in first["dumps"]}, {"worker", "director"})
        self.assertEqual(report["notes"], [])

    def test_kill(self):
        """SIGKILL to a worker: its last calls are read from its black box"""
        job = self.recorded(STEPS, "--workers", 3)
        job.event("checkpoint_written")
        job.strike(1)
        result = job.end()
        self.assert_finished(result, STEPS, self.clean_digest(STEPS))
        self.assert_names(1)
        self.assert_nothing_left()

    def test_stop(self):
        """SIGSTOP to a worker: the others wait in the sum that it did not enter or leave"""
        job = self.recorded(STEPS, "--workers", 3, "--detect-after", "1s")
        job.event("checkpoint_written")
        job.strike(1, signal.SIGSTOP)
        result = job.end()
        self.assert_finished(result, STEPS, self.clean_digest(STEPS))
        self.assert_names(1)
        self.assert_nothing_left()

    def test_asked(self):
        """SIGUSR1 to the director of a job that runs; a job without a failure leaves nothing else"""
        job = self.recorded(1000000)
        job.event("checkpoint_written")
        job.send(signal.SIGUSR1)
        names = ["flight-1-0.jsonl", "flight-1-1.jsonl"]
        where = os.path.join(self.work, "flight")
        until(lambda: all(os.path.exists(os.path.join(where, name)) for name in names), "two dumps")
        job.send(signal.SIGTERM)
        self.assertEqual(job.end().code, 128 + signal.SIGTERM)
        self.assertEqual(sorted(os.listdir(where)), names)
        self.run_job("--steps", 20, "--flight", "flight")
        self.assertEqual(os.listdir(where), [])
        self.look_at_nothing()

    def look_at_nothing(self):
        tool = os.path.join(os.path.dirname(harness.program), "troupe")
        done = subprocess.run([tool, "flight", "flight"], cwd=self.work, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "troupe: flight: flight holds no flight dumps\n")


if __name__ == "__main__":
    harness.main()
