"""Top-K with error feedback on real samples: the same bits for any number of workers, whoever dies; and how
good a model it makes."""

import signal

import harness
from harness import ProcessTest

STEPS = 600
EVERY = 100  # steps between two whole states
TOP_K = ("--top-k", "0.05")
ACCURACY_LOST_MAX = 0.005
FRACTIONS = ("0.01", "0.05", "0.1")
HELD_TO = ("0.05", "0.1")  # to ACCURACY_LOST_MAX; a smaller part takes more steps


class TopK(ProcessTest):
    def clean(self):
        return self.clean_digest(STEPS, *TOP_K)

    def check(self, *options, failures=(), survivors=True):
        result = self.run_job("--steps", STEPS, *TOP_K, *options)
        self.assert_finished(result, STEPS, self.clean(), survivors)
        self.assert_failures(result, list(failures))
        return result

    def test_workers(self):
        """1, 3 and 4 workers, in memory and over the network, give the bits of 2"""
        self.assertNotEqual(self.clean(), self.clean_digest(STEPS))
        for workers in (1, 3, 4):
            self.check("--workers", workers)
        for workers in (2, 3, 4):
            self.check("--workers", workers, "--collective", "ring")

    def test_killed(self):
        """one, then another worker killed: all go back to the newest whole state, in memory"""
        self.check("--workers", 3, "--fault", "kill:worker=1@step=250", "--fault", "kill:worker=0@step=499",
                   failures=[("kill", 1, "peer", EVERY), ("kill", 0, "peer", EVERY)])

    def test_killed_over_the_network(self):
        """the same where sums go over the network"""
        self.check("--workers", 3, "--collective", "ring", "--fault", "kill:worker=2@step=250",
                   failures=[("kill", 2, "peer", EVERY)])

    def test_killed_at_whole_states(self):
        """killed right before, and right after a whole state"""
        self.check("--fault", "kill:worker=1@step=200", "--fault", "kill:worker=0@step=401",
                   failures=[("kill", 1, "peer", EVERY), ("kill", 0, "peer", EVERY)])

    def test_all_killed(self):
        """all workers killed: from the newest checkpoint, which holds the residuals of all shards"""
        result = self.run_job("--steps", STEPS, *TOP_K, "--checkpoint-dir", "ck", "--fault",
                              "kill:worker=all@step=350")
        self.assert_finished(result, STEPS, self.clean(), survivors=False)
        self.assertEqual({f["source"] for f in result.failures}, {"disk"})

    def test_resumed(self):
        """a job that was ended goes on with more workers, and ends with the same bits"""
        options = ("--steps", STEPS, *TOP_K, "--checkpoint-dir", "ck")
        job = self.start(*options, "--workers", 2)
        job.event("checkpoint_written", step=200)
        job.send(signal.SIGTERM)
        job.end()
        result = self.run_job(*options, "--workers", 4)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(result.digest, self.clean())

    def test_other_state(self):
        """a checkpoint with residuals needs --top-k, and one without them cannot be gone on with by it"""
        self.kept_in_work.add("other")
        with_residuals = ("--steps", EVERY, *TOP_K, "--checkpoint-dir", "ck")
        self.assertEqual(self.run_job(*with_residuals).code, 0)
        self.assert_one_line(self.run_job("--steps", STEPS, "--checkpoint-dir", "ck"), 2,
                             "--checkpoint-dir ck", "no slot 'residual_0'", "--resume none")
        self.assertEqual(self.run_job("--steps", EVERY, "--checkpoint-dir", "other").code, 0)
        self.assert_one_line(self.run_job("--steps", STEPS, *TOP_K, "--checkpoint-dir", "other"), 2,
                             "needs the slot 'residual_0'", "--resume none")

    def test_accuracy(self):
        """the accuracy of all gradients after as many steps, within half a percent"""
        all_of_them = self.run_job("--steps", STEPS)
        self.assert_finished(all_of_them, STEPS)
        accuracy = {"all": all_of_them.summary["accuracy"]}
        for fraction in FRACTIONS:
            result = self.run_job("--steps", STEPS, "--top-k", fraction)
            self.assert_finished(result, STEPS)
            accuracy[fraction] = result.summary["accuracy"]
        for kept, reached in accuracy.items():
            harness.say(f"    {kept}: accuracy {reached:.4f}")
        for fraction in HELD_TO:
            self.assertLessEqual(accuracy["all"] - accuracy[fraction], ACCURACY_LOST_MAX, accuracy)


if __name__ == "__main__":
    harness.main()
