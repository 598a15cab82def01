"""Sums during backward, in real processes: a worker killed between two buckets costs its step, and no bit."""

import json
import os

import harness
from harness import ProcessTest

STEPS = 60
SHARDS_A_RANK = 4  # of two workers
DYING_STEP = 23
BUCKETS = ("--bucket", "4KiB")  # a layer each; the eighth is never begun
PARTS = 2  # group of the flight recorder


class Overlap(ProcessTest):
    kept_in_work = {"flight", "mark"}

    def test_buckets_change_nothing(self):
        """with and without buckets, 1 to 4 workers: one digest"""
        clean = self.clean_digest(STEPS, "--bucket", 0)
        for workers in (1, 2, 3, 4):
            for bucket in ("4KiB", "8KiB"):
                result = self.run_job("--steps", STEPS, "--workers", workers, "--bucket", bucket)
                self.assert_finished(result, STEPS, clean)

    def test_kill_between_buckets(self):
        """SIGKILL after each number of buckets, in the shard whose backward is overlapped"""
        clean = self.clean_digest(STEPS, "--bucket", 0)
        for layers in range(1, 9):
            mark = os.path.join(self.work, "mark")
            die = f"{DYING_STEP * SHARDS_A_RANK}:{layers}:{mark}"
            result = self.run_job("--steps", STEPS, *BUCKETS, "--flight", "flight",
                                  environment={"TROUPE_TEST_DIE": die})
            os.remove(mark)
            self.assert_finished(result, STEPS, clean)
            rank = result.failures[0]["rank"]
            self.assert_failures(result, [("kill", rank, "peer", 1)])
            self.assertEqual(self.begun_in(DYING_STEP, rank), min(layers, 7))

    def begun_in(self, step, rank):
        """Parts that the killed rank began in that step; the step before had all seven, and all were done."""
        with open(os.path.join(self.work, "flight", f"flight-1-{rank}.jsonl"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file.read().splitlines()[1:]]
        parts = [r for r in records if r["group"] == PARTS]
        before = [r for r in parts if r["step"] == step - 1]
        self.assertEqual([r["outcome"] for r in before], ["done"] * 7)
        ends = [r["finished_ns"] for r in before]
        self.assertEqual(ends, sorted(ends))
        self.assertFalse([r for r in records if r["step"] > step or (r["group"] == 0 and r["step"] == step)])
        return len([r for r in parts if r["step"] == step])


if __name__ == "__main__":
    harness.main()
