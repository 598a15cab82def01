"""Faults at the seams of a worker: what it sees of the outside goes wrong, and the digest stays the same."""

import harness
from harness import ProcessTest

STEPS = 600
LONG = 3000  # more than a lease, on any machine
SAVING = ("--checkpoint-dir", "ck", "--checkpoint-every", 150)


class SeamFaults(ProcessTest):
    def check(self, faults, failures, *options, steps=STEPS, detect_after="2s"):
        clean = self.clean_digest(steps)
        given = [word for fault in faults for word in ("--fault", fault)]
        result = self.run_job("--steps", steps, "--detect-after", detect_after, *options, *given)
        self.assert_finished(result, steps, clean)
        self.assert_failures(result, failures)
        return result

    def causes(self, result):
        return " | ".join(f["cause"] for f in result.failures)

    # --- borne: nothing is healed, nobody replaced ---

    def test_slow_worker(self):
        """a worker takes thirty times as long for a while: named as a straggler, left alone"""
        longer = round(4 * harness.SLOWNESS)
        result = self.check([f"slow:worker=1@step=100,factor=30,for={longer}s"], [])
        self.assertIn(1, [e["rank"] for e in result.named("straggler")])

    def test_slow_prefetcher(self):
        """a prefetcher takes twenty times as long for a while"""
        self.check(["slow:prefetcher=1@step=100,factor=20,for=1s"], [])

    def test_clog(self):
        """a worker's messages are late, by less than a lease"""
        self.check(["clog:worker=1@step=100,factor=100,for=1s"], [])

    def test_short_cut(self):
        """a worker is cut off for less than a lease, both ways and one way"""
        for way in ("both", "in", "out"):
            self.check([f"cut:worker=1@step=100,for=300ms,way={way}"], [])

    def test_short_hang(self):
        """a worker enters an all-reduce late"""
        self.check(["hang-in-collective:worker=1@step=100,for=300ms"], [])

    def test_clock_step(self):
        """a worker's clock jumps ahead by an hour: nobody is declared dead for it"""
        result = self.check(["clock-step:worker=1@step=100,for=60min", "kill:worker=0@step=300"],
                            [("kill", 0, "peer", 1)])
        self.assertLess(result.failures[0]["recovered_ms"], 60_000)

    def test_disk_slow(self):
        """writing takes fifty times as long: versions come late"""
        self.check(["disk-slow@step=100,factor=50"], [], *SAVING)
        self.assertIn(f"step-{STEPS:012}", self.assert_versions_only())

    def test_disk_full(self):
        """the disk is full for a while: an event says so, training goes on, later versions are written"""
        result = self.check(["disk-full@step=149,for=1s"], [], *SAVING, steps=LONG)
        failed = result.named("checkpoint_failed")
        self.assertTrue(failed)
        self.assertIn("no space left", failed[0]["cause"])
        self.assertEqual(result.summary["checkpoint"]["failed"], len(failed))
        self.assertIn(f"step-{LONG:012}", self.assert_versions_only())

    # --- healed ---

    def test_hang(self):
        """a worker never enters an all-reduce: it is the one that is named and replaced"""
        result = self.check(["hang-in-collective:worker=1@step=400"], [("hang", 1, "peer", 1)],
                            detect_after="500ms")
        self.assertIn("has not entered the collective", self.causes(result))
        self.assertEqual([e["rank"] for e in result.named("hang")], [1])

    def test_skip(self):
        """a worker takes its own part for the sum: refused before the step is applied, by rank and step"""
        result = self.check(["skip-collective:worker=1@step=300"], [("throw", 1, "peer", 1)])
        for part in ("SE-9", "rank 1", "step 300"):
            self.assertIn(part, self.causes(result))

    def test_nan(self):
        """a gradient is not a number, once: nobody applies the sum, everybody computes the step again"""
        result = self.check(["nan:worker=1@step=300"], [("nan", 1, "memory", 1)])
        seen = [(e["rank"], e["step"]) for e in result.named("nan")]
        self.assertEqual(seen, [(1, 300)])
        self.assertEqual(len(result.named("worker_started")), 2)

    def test_oom(self):
        """an allocation fails: told as what it is"""
        result = self.check(["oom:worker=1@step=300"], [("oom", 1, "peer", 1)])
        self.assertIn("allocation", self.causes(result))

    def test_long_cut(self):
        """a worker is cut off for longer than a lease: ended and replaced"""
        self.check(["cut:worker=1@step=300,for=20s"], [("stop", 1, "peer", 1)], steps=LONG,
                   detect_after="1s")

    def test_path_error(self):
        """a worker's path to the director breaks: it is opened again, and an event says so"""
        result = self.check(["path-error:worker=1@step=300"], [], detect_after="1s")
        self.assertEqual([e["rank"] for e in result.named("path_interrupted")], [1])

    def test_torn_write(self):
        """a shard is written half and its writer dies: the version is never used"""
        result = self.check(["torn-write@step=140"], [("kill", 0, "peer", 1)], *SAVING)
        written = [e["step"] for e in result.named("checkpoint_written")]
        self.assertEqual(written[-1], STEPS)
        self.assert_versions_only()


class Repeated(ProcessTest):
    def test_nan_again_and_again(self):
        """one rank's gradient is never a number: the job ends, one line names step and cause"""
        result = self.run_job("--steps", 200, "--fault", "nan:worker=1@step=50,times=always")
        self.assertEqual(result.code, 3, result.err)
        for part in ("step 50", "rank 1", "not finite"):
            self.assertIn(part, result.err[-1])
        self.assertEqual([f["kind"] for f in result.failures], ["nan"] * 3)

    def test_nan_everywhere(self):
        """every rank's gradient is not a number: that is the data or the model, exit code 5"""
        result = self.run_job("--steps", 200, "--fault", "nan:worker=all@step=50,times=always")
        self.assertEqual(result.code, 5, result.err)
        for part in ("step 50", "every rank"):
            self.assertIn(part, result.err[-1])


if __name__ == "__main__":
    harness.main()
