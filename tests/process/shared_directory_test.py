"""Two jobs, one checkpoint directory: the second waits, or is refused with one clear line."""

import os
import signal

import harness
from harness import ProcessTest


class SharedDirectory(ProcessTest):
    def test_refused_while_the_first_runs(self):
        """the first goes on undisturbed; the second waits for a moment, then ends with exit code 2"""
        first = self.start("--steps", 1000000, "--checkpoint-dir", "ck")
        first.event("checkpoint_written")
        second = self.start("--steps", 2000, "--checkpoint-dir", "ck", "--detect-after", "100ms").end()
        self.assertEqual(second.code, 2)
        self.assertEqual(len(second.err), 2, second.err)
        self.assertRegex(second.err[0], "^waiting up to .* for the processes of an earlier job in ck$")
        self.assertTrue(
            second.err[1].startswith("fashion_mnist: --checkpoint-dir 'ck' is in use"), second.err[1])
        self.assertIn("choose another directory", second.err[1])
        self.assertEqual(second.events, [])
        self.assertIsNone(second.summary)
        before = len(first.events())
        first.event("checkpoint_written", count=1 + len([e for e in first.events() if "bytes" in e]))
        self.assertGreater(len(first.events()), before)
        first.send(signal.SIGTERM)
        result = first.end()
        self.assertEqual(result.code, 128 + signal.SIGTERM)
        self.assertEqual(result.failures, [])
        self.assertEqual(result.summary["generations"], 1)
        self.assert_nothing_left()
        self.assert_versions_only()

    def test_waits_for_an_ending_job(self):
        """started while the first ends, the second goes on from its last checkpoint"""
        # Of one length: from the end of the warm-up on, what is learned depends on it.
        first = self.start("--steps", 2000, "--checkpoint-dir", "ck", "--checkpoint-every", 50)
        first.event("checkpoint_written")
        second = self.start("--steps", 2000, "--checkpoint-dir", "ck")
        first.send(signal.SIGTERM)
        self.assertEqual(first.end().code, 128 + signal.SIGTERM)
        result = second.end()
        self.assertEqual(len(result.named("resumed")), 1)
        self.assert_finished(result, 2000, self.clean_digest(2000))
        self.assert_nothing_left()
        self.assert_versions_only()

    def test_two_directories(self):
        """two jobs in two directories do not know of each other"""
        self.kept_in_work = {"ck", "other"}
        jobs = [self.start("--steps", 200, "--checkpoint-dir", name) for name in ("ck", "other")]
        for job in jobs:
            self.assert_finished(job.end(), 200, None)
        self.assertEqual(jobs[0].events()[-1]["state_digest"], jobs[1].events()[-1]["state_digest"])
        self.assert_nothing_left()
        self.assertEqual(os.listdir(os.path.join(self.work, "ck")),
                         os.listdir(os.path.join(self.work, "other")))


if __name__ == "__main__":
    harness.main()
