"""One digest: whatever the number of workers, and under every fault that can be injected."""

import harness
from harness import ProcessTest

STEPS = 600


class Exactness(ProcessTest):
    def check(self, faults, failures, generations, workers=2, options=(), survivors=True):
        clean = self.clean_digest(STEPS)
        given = [word for fault in faults for word in ("--fault", fault)]
        result = self.run_job("--steps", STEPS, "--workers", workers, *options, *given)
        self.assert_finished(result, STEPS, clean, survivors)
        if "worker=all" in " ".join(faults):  # whoever reaches the step first is struck first
            result.failures.sort(key=lambda f: f["rank"])
        self.assert_failures(result, failures)
        self.assertEqual(result.summary["generations"], generations)
        self.assertEqual(result.summary["restarts"], len(failures))
        return result

    def test_workers(self):
        """1, 2, 3 and 4 workers give the same bits"""
        clean = self.clean_digest(STEPS)
        for workers in (1, 3, 4):
            result = self.run_job("--steps", STEPS, "--workers", workers)
            self.assert_finished(result, STEPS, clean)
            self.assert_failures(result, [])
            self.assertEqual(result.summary["workers_end"], workers)

    def test_kill(self):
        """one worker killed"""
        self.check(["kill:worker=1@step=200"], [("kill", 1, "peer", 1)], 2)

    def test_two_kills(self):
        """two workers killed at different steps, rank 0 among them"""
        self.check(
            ["kill:worker=1@step=150", "kill:worker=0@step=400"],
            [("kill", 1, "peer", 1), ("kill", 0, "peer", 1)],
            3,
        )

    def test_kill_rank_0(self):
        """rank 0 of three killed"""
        self.check(["kill:worker=0@step=200"], [("kill", 0, "peer", 1)], 2, workers=3)

    def test_kill_first_and_last_step(self):
        """killed in the first step, and in the last"""
        self.check(
            ["kill:worker=1@step=1", f"kill:worker=0@step={STEPS}"],
            [("kill", 1, "peer", 1), ("kill", 0, "peer", 1)],
            3,
        )

    def test_segv_and_exit(self):
        """a segmentation fault, then an exit with a code of the worker's own"""
        result = self.check(
            ["segv:worker=1@step=150", "exit:worker=0@step=300,code=9"],
            [("segv", 1, "peer", 1), ("exit", 0, "peer", 1)],
            3,
        )
        self.assertIn("9", result.failures[1]["cause"])

    def test_all_but_one(self):
        """three of four killed at once: the survivor's state reaches all, one of them by way of another"""
        clean = self.clean_digest(STEPS)
        job = self.start("--steps", STEPS, "--workers", 4)
        job.event("first_step_applied")
        for rank in (0, 2, 3):
            job.strike(rank)
        result = job.end()
        self.assert_nothing_left()
        self.assert_finished(result, STEPS, clean)
        result.failures.sort(key=lambda f: f["rank"])
        self.assert_failures(result, [("kill", rank, "peer", 1) for rank in (0, 2, 3)])

    def test_throw_worker(self):
        """the model throws: the process stays, its state comes from the peer"""
        result = self.check(["throw:worker=1@step=200"], [("throw", 1, "peer", 1)], 2)
        self.assertEqual(len(result.named("worker_started")), 2)

    def test_throw_prefetcher(self):
        """a prefetcher throws: healed inside its process, without a new generation"""
        result = self.check(["throw:prefetcher=1@step=200"], [("throw", 1, "memory", 0)], 1)
        self.assertEqual(len(result.named("worker_started")), 2)
        self.assertEqual(result.named("generation_ended"), [])

    def test_stop(self):
        """a stopped process is found, ended and replaced"""
        self.check(["stop:worker=1@step=300,for=5s"], [("stop", 1, "peer", 1)], 2)

    def test_single_worker_without_checkpoint(self):
        """the only worker dies and nothing was saved: from the start again"""
        self.check(["kill:worker=0@step=50"], [("kill", 0, "none", 50)], 2, workers=1)

    def test_all_killed_and_newest_damaged(self):
        """all killed at once, the newest checkpoint damaged: the one before is used, and an event says why"""
        result = self.check(
            ["bit-flip:checkpoint=newest@step=440", "kill:worker=all@step=445"],
            [("kill", 0, "disk", 296), ("kill", 1, "disk", 296)],
            2,
            options=("--checkpoint-dir", "ck", "--checkpoint-every", 150),
        )
        rejected = result.named("checkpoint_rejected")
        self.assertEqual([e["step"] for e in rejected], [300])
        self.assertIn("digest", rejected[0]["cause"])
        resumed = [e for e in result.named("resumed") if "path" in e]
        self.assertEqual([e["step"] for e in resumed], [150])
        self.assert_versions_only()

    def killed_director(self, again):
        clean = self.clean_digest(STEPS)
        common = ["--steps", STEPS, "--checkpoint-dir", "ck", "--detect-after", "500ms"]
        first = self.start(*common, "--fault", "director-kill@step=250").end()
        self.assertEqual(first.code, -9)
        self.assertIsNone(first.summary)
        result = self.run_job(*common, "--resume", "auto", *again)
        self.assert_finished(result, STEPS, clean)
        self.assert_failures(result, [])
        self.assertEqual(len(result.named("resumed")), 1)
        self.assertGreaterEqual(result.named("resumed")[0]["step"], 100)
        self.assertGreater(result.summary["generations"], 1)  # they go on from the journal
        self.assert_versions_only()

    def test_director_kill_same_command(self):
        """the director dies; the same command, fault and all, goes on: the fault has struck already"""
        self.killed_director(["--fault", "director-kill@step=250"])

    def test_director_kill_without_fault(self):
        """the director dies; a command without the fault goes on"""
        self.killed_director([])


class Budget(ProcessTest):
    def test_same_failure_without_progress(self):
        """the same failure three times without progress ends the job: exit code 3, the cause in one line"""
        result = self.run_job("--steps", 100, "--fault", "exit:worker=1@step=50,times=always")
        self.assertEqual(result.code, 3)
        told = [line for line in result.err if line.startswith("fashion_mnist: ")]
        self.assertEqual(told, result.err[-1:])
        for part in ("worker 1", "3 times", "step 50", "exit code 1"):
            self.assertIn(part, told[0])
        self.assertEqual(result.summary["exit_reason"], told[0].removeprefix("fashion_mnist: "))
        self.assertEqual([f["kind"] for f in result.failures], ["exit"] * 3)
        self.assertEqual(len(result.named("restart_budget_spent")), 1)
        self.assertFalse([line for line in result.err if "invariant" in line], result.err)

    def test_intensity(self):
        """a worker that dies again and again, with progress in between, ends the job too"""
        faults = [w for step in range(10, 121, 10) for w in ("--fault", f"kill:worker=1@step={step}")]
        result = self.run_job("--steps", 200, "--checkpoint-dir", "ck", *faults)
        self.assertEqual(result.code, 3)
        self.assertIn("more than 10 times", result.err[-1])
        self.assertEqual(len(result.failures), 11)
        self.assert_versions_only()


if __name__ == "__main__":
    harness.main()
