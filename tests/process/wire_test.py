"""Rounded gradients on real samples: as good a model, and the same bits for any number of workers."""

import harness
from harness import ProcessTest

STEPS = 600
PARAMETERS = 784 * 256 + 256 + 256 * 10 + 16  # each starts at a multiple of 16 elements
TAIL = 16  # loss and counts, never rounded
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
ACCURACY_LOST_MAX = 0.005


class Wire(ProcessTest):
    def contribution_bytes(self, wire):
        return PARAMETERS * BYTES[wire] + TAIL * 4

    def test_accuracy(self):
        """the accuracy of float32, within half a percent, and what a contribution takes on the wire"""
        accuracy = {}
        for wire in BYTES:
            result = self.run_job("--steps", STEPS, "--wire", wire)
            self.assert_finished(result, STEPS)
            accuracy[wire] = result.summary["accuracy"]
            harness.say(f"    {wire}: accuracy {accuracy[wire]:.4f}, loss {result.summary['loss_last']:.4f}, "
                        f"a contribution takes {self.contribution_bytes(wire)} bytes a step")
        for wire in BYTES:
            self.assertLessEqual(abs(accuracy[wire] - accuracy["float32"]), ACCURACY_LOST_MAX, accuracy)

    def test_exactness(self):
        """1 to 4 workers, buckets, and a kill: one digest a format, another one than that of float32"""
        digests = {"float32": self.clean_digest(STEPS)}
        for wire in ("float16", "bfloat16"):
            clean = self.clean_digest(STEPS, "--wire", wire)
            digests[wire] = clean
            for options in (("--workers", 1), ("--workers", 3, "--bucket", "4KiB"), ("--workers", 4)):
                result = self.run_job("--steps", STEPS, "--wire", wire, *options)
                self.assert_finished(result, STEPS, clean)
            result = self.run_job("--steps", STEPS, "--wire", wire, "--fault", "kill:worker=1@step=200")
            self.assert_finished(result, STEPS, clean)
            self.assert_failures(result, [("kill", 1, "peer", 1)])
        self.assertEqual(len(set(digests.values())), 3, digests)


if __name__ == "__main__":
    harness.main()
