"""A job whose gradients are summed through NCCL, on FAKE libraries of CUDA and NCCL: no GPU takes part.

The program, its director, supervision, the loader and the communicators' life are as they are; the fakes move
real bytes between the processes (tests/unit/nccl/fake_libraries).
"""

import argparse
import ctypes
import os
import signal
import sys

import harness
from harness import Job, ProcessTest

STEPS = 120
GPU = ("--device", "cuda:0")
FAKE = "nccl (FAKE)"

libraries = {}  # set by the command line


def fake_libraries(folder):
    return {f"TROUPE_{name.upper()}_LIBRARY": os.path.join(folder, f"libfake_{file}.so")
            for name, file in (("cuda", "cudart"), ("nccl", "nccl"), ("kernels", "kernels"))}


class GpuJob(ProcessTest):
    def start(self, *options, environment=None, **how):
        return super().start(*options, environment={**libraries, **(environment or {})}, **how)

    def by(self, kind, result):
        self.assertEqual({e["collective"] for e in result.named("generation_started")}, {kind})

    def on_gpus(self, steps, workers, *options, **how):
        result = self.run_job("--steps", steps, "--workers", workers, *GPU, *options, **how)
        self.assert_finished(result, steps, self.clean_digest(steps))
        self.by(FAKE, result)
        return result

    def test_workers(self):
        """1 to 4 workers, a device each: the digest of CPUs, and everything says that it is a fake"""
        for workers in (1, 2, 3, 4):
            result = self.on_gpus(STEPS, workers)
            self.assert_failures(result, [])
            self.assertEqual({(e["rank"], e["device"]) for e in result.named("worker_ready")},
                             {(n, f"cuda:{n} (FAKE)") for n in range(workers)})
            self.assertIn("FAKE libraries of CUDA and NCCL: no GPU takes part", " ".join(result.err))
            self.assertEqual(result.summary["device"], "cuda:0 (FAKE)")

    def test_one_fake(self):
        """the real NCCL beside fakes of CUDA and the kernels: the job is called fake"""
        try:
            ctypes.CDLL("libnccl.so.2")
        except OSError:
            self.skipTest("no NCCL is installed here")
        job = self.start("--steps", STEPS, *GPU, environment={"TROUPE_NCCL_LIBRARY": "libnccl.so.2"})
        self.assertEqual(job.event("generation_started")["collective"], FAKE)
        job.send(signal.SIGINT)
        self.assertIn("FAKE libraries of CUDA and NCCL: no GPU takes part", " ".join(job.end().err))
        self.assert_nothing_left()

    def test_settings(self):
        """small buckets and accumulation: the digest of such a job on CPUs"""
        for options in (("--bucket", "1KiB"), ("--accumulate", "3", "--bucket", "64KiB")):
            result = self.run_job("--steps", 60, "--workers", 3, *GPU, *options)
            self.assertEqual(result.code, 0, result.err)
            self.by(FAKE, result)
            self.assertEqual(result.digest, self.clean_digest(60, *options))

    def test_killed(self):
        """whichever rank is killed, the others go on with its replacement under a new communicator"""
        for workers, rank in ((2, 0), (3, 1), (4, 3)):
            result = self.on_gpus(STEPS, workers, "--fault", f"kill:worker={rank}@step=60")
            self.assert_failures(result, [("kill", rank, "peer", 2)])

    def test_killed_again_and_again(self):
        """ten kills from outside: the survivors keep their processes"""
        choose = harness.seeded(54)
        job = self.start("--steps", 600, "--workers", 3, *GPU)
        for number in range(1, 11):
            job.event("first_step_applied", number)
            job.strike(choose.randrange(3))
        result = job.end()
        self.assert_nothing_left()
        self.assert_finished(result, 600, self.clean_digest(600))
        self.assertEqual(len(result.failures), 10)
        self.by(FAKE, result)

    def test_stopped(self):
        """a worker that stands still is replaced"""
        job = self.start("--steps", 300, "--workers", 3, *GPU, "--detect-after", "1s")
        job.event("first_step_applied")
        job.strike(1, signal.SIGSTOP)
        result = job.end()
        self.assert_nothing_left()
        self.assert_finished(result, 300, self.clean_digest(300))
        self.assertEqual([f["kind"] for f in result.failures], ["stop"])

    def test_faults_at_the_seams(self):
        """hangs, skipped sums, broken paths, cuts and bad values are seen and healed as on CPUs"""
        result = self.on_gpus(STEPS, 3, "--fault", "hang-in-collective:worker=1@step=40")
        self.assertEqual([(f["kind"], f["rank"]) for f in result.failures], [("hang", 1)])
        for fault in ("skip-collective:worker=1@step=40", "path-error:worker=1@step=40",
                      "cut:worker=1@step=40,for=300ms", "nan:worker=0@step=40"):
            self.on_gpus(STEPS, 3, "--fault", fault)

    def test_sum_fails(self):
        """a sum that NCCL fails by itself, at all ranks or at one: all go on, with their processes"""
        for where in ({}, {"FAKE_NCCL_BREAK_RANK": "1"}):
            result = self.on_gpus(STEPS, 3, environment={"FAKE_NCCL_BREAK": "40", **where})
            self.assertEqual({f["kind"] for f in result.failures}, {"device"})
            self.assertIn("the sum failed: ncclAllGather", result.failures[0]["cause"])
            self.assertEqual(len({e["pid"] for e in result.named("worker_started")}), 3)

    def test_ranks_never_meet(self):
        """communicators that cannot be made end the job with the reason"""
        result = self.run_job("--steps", STEPS, "--shards", 16, "--workers", 9, *GPU,
                              environment={"FAKE_CUDA_DEVICES": "9"})  # one more than the fake of NCCL takes
        self.assertEqual(result.code, 3, result.err)
        self.assertIn("the sum failed: ncclCommInitRankConfig", result.err[-1])

    def test_abort_never_returns(self):
        """a library that hangs in its abort costs the processes that wait for it, not the job"""
        result = self.run_job("--steps", STEPS, "--workers", 2, *GPU, "--checkpoint-dir", "ck",
                              "--checkpoint-every", "20", "--fault", "kill:worker=0@step=60",
                              environment={"FAKE_NCCL_ABORT": "hang"})
        self.assert_finished(result, STEPS, self.clean_digest(STEPS), survivors=False)
        self.assertEqual(len(result.failures), 2)
        self.assertIn("abort", result.failures[1]["cause"])

    def test_joined(self):
        """a worker from outside with a device; one without, or with one for a job on CPUs, is told"""
        with open(os.path.join(self.out, "token"), "w", encoding="ascii") as file:
            file.write("0123456789abcdef\n")
        token = ("--token-file", os.path.join(self.out, "token"))

        def join(job, *options):
            endpoint = job.event("job_started")["endpoint"]
            return Job(self, command=[harness.program, "--join", endpoint, *token, *options],
                       environment=libraries)

        job = self.start("--steps", STEPS, "--workers", 2, "--external", 1, *token, *GPU)
        self.assert_one_line(join(job).end(), 2, "--device cpu: the job sums on GPUs", "accepted: cuda:N")
        joiner = join(job, "--device", "cuda:1")
        result = job.end()
        self.assertEqual(joiner.process.wait(harness.DEADLINE_S), 0)
        self.assert_finished(result, STEPS, self.clean_digest(STEPS))
        self.by(FAKE, result)
        job = self.start("--steps", STEPS, "--workers", 2, "--external", 1, *token)
        self.assert_one_line(join(job, *GPU).end(), 2, "--device cuda:0: the job sums on CPUs",
                             "accepted: auto, cpu")
        join(job)
        self.assert_finished(job.end(), STEPS, self.clean_digest(STEPS))
        self.assert_nothing_left()

    def test_resumed(self):
        """what was trained through NCCL goes on in shared memory, from its checkpoint"""
        self.run_job("--steps", STEPS, *GPU, "--checkpoint-dir", "ck", "--checkpoint-every", "20",
                     "--fault", "director-kill@step=60")
        result = self.run_job("--steps", STEPS, "--checkpoint-dir", "ck")
        self.assert_finished(result, STEPS, self.clean_digest(STEPS))
        self.assertEqual(len(result.named("resumed")), 1)
        self.by("shm", result)

    def test_refusals(self):
        """what is missing, and what is not summed on GPUs, is one line"""
        for options, environment, parts in (
                (GPU, {"TROUPE_CUDA_LIBRARY": "libno_such.so"},
                 ["--device cuda:0: no CUDA runtime (libno_such.so", "install", "accepted: auto, cpu"]),
                (GPU, {"TROUPE_NCCL_LIBRARY": "libno_such.so"}, ["--device cuda:0: no NCCL (libno_such.so"]),
                (GPU, {"TROUPE_KERNELS_LIBRARY": "libno_such.so"}, ["--device cuda:0: no GPU kernels"]),
                (GPU, {"FAKE_NCCL_VERSION": "21304"}, ["--device cuda:0: NCCL 2.13.4 is too old"]),
                (GPU, {"FAKE_CUDA_DRIVER": "12040"}, ["--device cuda:0: the NVIDIA driver runs CUDA 12.4"]),
                (GPU, {"FAKE_CUDA_DEVICES": "1"},
                 ["--device cuda:0: no device 1: this machine has 1", "2 workers are started here"]),
                ((*GPU, "--wire", "bfloat16"), {}, ["--device cuda:0: --wire bfloat16 is not summed on GPUs",
                                                    "accepted: --wire float32, or --device cpu"]),
                ((*GPU, "--top-k", "0.1"), {}, ["--device cuda:0: --top-k 0.1"]),
                ((*GPU, "--collective", "ring"), {}, ["--device cuda:0: --collective ring"]),
                (("--device", "cuda:x"), {}, ["--device cuda:x: no such device",
                                              "accepted: auto, cpu, cuda:N"])):
            job = self.start("--steps", 10, "--workers", 2, *options, environment=environment)
            self.assert_one_line(job.end(), 2, *parts)
        self.assert_nothing_left()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--fakes", required=True, help="the folder of the fake libraries")
    known, rest = parser.parse_known_args()
    libraries = fake_libraries(os.path.abspath(known.fakes))
    sys.argv[1:] = rest
    harness.main()
