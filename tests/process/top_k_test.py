"""Top-K with error feedback on real samples: the same bits for any number of workers, whoever dies; how good
a model it makes, and what is sent for it."""

import os
import signal
import subprocess

import harness
from harness import Job, ProcessTest

STEPS = 600
EVERY = 100  # steps between two whole states
TOP_K = ("--top-k", "0.05")
ACCURACY_LOST_MAX = 0.005
FRACTIONS = ("0.01", "0.05")
HELD_TO = ("0.05",)  # to ACCURACY_LOST_MAX; a smaller part takes more steps
SENT_MAX = {(2, "0.01"): 0.05, (2, "0.05"): 0.15, (8, "0.01"): 0.12, (8, "0.05"): 0.4}  # of what all take


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
        """a checkpoint with residuals needs the same --top-k, and one without cannot be gone on with by it"""
        self.kept_in_work = {"ck", "other"}
        with_residuals = ("--steps", EVERY, *TOP_K, "--checkpoint-dir", "ck")
        self.assertEqual(self.run_job(*with_residuals).code, 0)
        self.assert_one_line(self.run_job("--steps", STEPS, "--checkpoint-dir", "ck"), 2,
                             "--checkpoint-dir ck", "no slot 'residual_0'", "--resume none")
        self.assert_one_line(self.run_job("--steps", STEPS, "--top-k", "0.1", "--checkpoint-dir", "ck"), 2,
                             "--top-k 0.05", "this run says 0.1", "the same --top-k", "--resume none")
        self.assertEqual(self.run_job("--steps", EVERY, "--checkpoint-dir", "other").code, 0)
        self.assert_one_line(self.run_job("--steps", STEPS, *TOP_K, "--checkpoint-dir", "other"), 2,
                             "needs the slot 'residual_0'", "--resume none")

    def test_accuracy(self):
        """the accuracy of all gradients after as many steps, within half a percent; bytes sent a step"""
        for shards in (2, 8):
            reached = {}
            for kept in ("0", *FRACTIONS):
                result, sent = self.counted("--shards", shards, "--top-k", kept)
                self.assert_finished(result, STEPS)
                reached[kept] = (result.summary["accuracy"], sent)
                harness.say(f"    {shards} shards, --top-k {kept}: accuracy {reached[kept][0]:.4f}, "
                            f"{sent} bytes a step")
            accuracy, sent = reached["0"]
            for kept in HELD_TO:
                self.assertLessEqual(accuracy - reached[kept][0], ACCURACY_LOST_MAX, reached)
            for kept in FRACTIONS if sent else ():
                self.assertLess(reached[kept][1], sent * SENT_MAX[shards, kept], reached)

    def counted(self, *options):
        """A job over the network, in a network namespace of its own: everything that its two workers and
        its director send, a step; None where namespaces are not permitted."""
        permitted = subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True)
        options = ("--steps", STEPS, "--collective", "ring", *options)
        if permitted.returncode != 0:
            return self.run_job(*options), None
        number = self.numbers + 1
        counters = os.path.join(self.out, f"network{number}")
        script = f'ip link set lo up && "$@"; code=$?; cat /proc/net/dev > {counters}; exit $code'
        words = [*harness.USUAL, "--detect-after", "2s", *options,
                 "--events", os.path.join(self.out, f"events{number}.jsonl"),
                 "--summary", os.path.join(self.out, f"summary{number}.json")]
        result = Job(self, command=["unshare", "--net", "sh", "-c", script, "sh", harness.program,
                                    *[str(word) for word in words]]).end()
        with open(counters, encoding="ascii") as file:
            received = next(line.split()[1] for line in file if line.lstrip().startswith("lo:"))
        return result, int(received) // STEPS


if __name__ == "__main__":
    harness.main()
