"""Signals to the director end the job in order: exit code 128 + N, a summary, nothing left."""

import os
import signal

import harness
from harness import ProcessTest


class Signals(ProcessTest):
    def assert_ended_by(self, result, number):
        self.assertEqual(result.code, 128 + number)
        self.assertEqual(result.err[-1], f"fashion_mnist: ended by {signal.Signals(number).name}")
        self.assertEqual(len([l for l in result.err if l.startswith("fashion_mnist: ")]), 1, result.err)
        self.assertFalse([l for l in result.err if l.startswith("troupe: ")], result.err)
        self.assertEqual(result.summary["exit_reason"], f"ended by {signal.Signals(number).name}")
        self.assertEqual(result.named("job_finished")[0]["reason"], result.summary["exit_reason"])
        self.assert_nothing_left()

    def ended_while_training(self, number, send, **how):
        job = self.start("--steps", 1000000, "--workers", 3, "--checkpoint-dir", "ck", **how)
        job.event("checkpoint_written")
        send(job)
        result = job.end()
        self.assert_ended_by(result, number)
        self.assertEqual(result.failures, [])
        self.assertGreaterEqual(result.summary["steps_committed"], 100)
        self.assert_versions_only()

    def test_sigint(self):
        """SIGINT to the director"""
        self.ended_while_training(signal.SIGINT, lambda job: job.send(signal.SIGINT))

    def test_sigterm(self):
        """SIGTERM to the director"""
        self.ended_while_training(signal.SIGTERM, lambda job: job.send(signal.SIGTERM))

    def test_terminal_interrupt(self):
        """a terminal's Ctrl-C reaches every process of the group: workers leave it to the director"""

        def interrupt(job):
            harness.say(f"    -> SIGINT to process group {job.pid}")
            os.killpg(job.pid, signal.SIGINT)

        self.ended_while_training(signal.SIGINT, interrupt, own_group=True)

    def test_before_the_first_step(self):
        """SIGTERM while the workers start"""
        job = self.start("--steps", 1000000, "--workers", 4, "--checkpoint-dir", "ck")
        job.event("worker_started", count=4)
        job.send(signal.SIGTERM)
        self.assert_ended_by(job.end(), signal.SIGTERM)
        self.assertFalse(os.path.exists(os.path.join(self.work, "ck")))

    def test_during_recovery(self):
        """SIGTERM while a failure is being recovered from"""
        job = self.start("--steps", 1000000, "--workers", 3, "--fault", "kill:worker=1@step=30")
        job.event("failure_detected")
        job.send(signal.SIGTERM)
        result = job.end()
        self.assert_ended_by(result, signal.SIGTERM)
        self.assertEqual([f["kind"] for f in result.failures], ["kill"])

    def test_goes_on_after_sigterm(self):
        """a job ended by SIGTERM goes on with the same command to the same bits"""
        options = ["--steps", 400, "--checkpoint-dir", "ck", "--checkpoint-every", 50]
        job = self.start(*options)
        job.event("checkpoint_written")
        job.send(signal.SIGTERM)
        self.assert_ended_by(job.end(), signal.SIGTERM)
        self.assert_finished(self.run_job(*options), 400, self.clean_digest(400))
        self.assert_versions_only()


if __name__ == "__main__":
    harness.main()
