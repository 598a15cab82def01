"""A job whose gradients are summed over the network, on one host: the bits of shared memory, and recovery."""

import harness
from harness import ProcessTest

STEPS = 300
RING = ("--collective", "ring")


class RingJob(ProcessTest):
    def by(self, kind, result):
        self.assertEqual({e["collective"] for e in result.named("generation_started")}, {kind})

    def test_workers(self):
        """2, 3 and 4 workers give the bits of shared memory"""
        clean = self.clean_digest(STEPS, "--collective", "shm")
        for workers in (2, 3, 4):
            result = self.run_job("--steps", STEPS, "--workers", workers, *RING)
            self.assert_finished(result, STEPS, clean)
            self.assert_failures(result, [])
            self.by("ring", result)

    def test_chooses_memory(self):
        """without a word, workers of one host sum in its memory"""
        result = self.run_job("--steps", STEPS)
        self.assert_finished(result, STEPS, self.clean_digest(STEPS, "--collective", "shm"))
        self.by("shm", result)

    def test_killed(self):
        """whichever rank is killed, the others go on with its replacement"""
        clean = self.clean_digest(STEPS, "--collective", "shm")
        for workers, rank in ((2, 0), (3, 1), (4, 3)):
            result = self.run_job("--steps", STEPS, "--workers", workers, *RING,
                                  "--fault", f"kill:worker={rank}@step=150")
            self.assert_finished(result, STEPS, clean)
            self.assert_failures(result, [("kill", rank, "peer", 2)])
            self.by("ring", result)

    def test_faults_at_the_seams(self):
        """hangs, skipped sums, broken paths and cuts are seen and healed as over shared memory"""
        clean = self.clean_digest(STEPS, "--collective", "shm")
        faults = ("hang-in-collective:worker=1@step=100", "skip-collective:worker=1@step=100",
                  "path-error:worker=1@step=100", "cut:worker=1@step=100,for=300ms",
                  "nan:worker=0@step=100")
        for fault in faults:
            result = self.run_job("--steps", STEPS, "--workers", 3, *RING, "--fault", fault)
            self.assert_finished(result, STEPS, clean)
            self.by("ring", result)

    def test_resumed(self):
        """what was trained over the network goes on in shared memory, from its checkpoint"""
        self.run_job("--steps", STEPS, *RING, "--checkpoint-dir", "ck", "--fault", "director-kill@step=150")
        result = self.run_job("--steps", STEPS, "--collective", "shm", "--checkpoint-dir", "ck")
        self.assert_finished(result, STEPS, self.clean_digest(STEPS, "--collective", "shm"))
        self.assertEqual(len(result.named("resumed")), 1)

    def test_refusals(self):
        """a name that is none is one line"""
        for options, parts in (
                (["--collective", "mesh"], ["--collective mesh", "accepted: auto, shm, ring"]),
                (["--network", "nosuch0"], ["--network nosuch0: no such device", "lo"]),
                (["--network", "a:1"], ["--network a:1: not a device's name"])):
            self.assert_one_line(self.start("--steps", 10, *options).end(), 2, *parts)


if __name__ == "__main__":
    harness.main()
