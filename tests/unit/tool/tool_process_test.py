#!/usr/bin/env python3
"""The `troupe` tool on real programs: what it starts, what it says, and that nothing is left.

Usage: tool_process_test.py DIRECTORY_OF_PROGRAMS [TEST...]
"""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

BIN = ""
LIMIT_S = 120 * float(os.environ.get("TROUPE_TEST_SLOWNESS", "1"))


def tool(*arguments):
    return subprocess.run([os.path.join(BIN, "troupe"), *arguments], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)


def processes_with(mark):
    """Command lines of running processes that contain `mark`."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
                line = file.read()
        except OSError:
            continue
        if mark in line and int(name) != os.getpid():
            found.append(line)
    return found


def processes_of(program):
    """Ids of running processes whose executable is `program` of this build."""
    path = os.path.realpath(os.path.join(BIN, program))
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/exe") == path:
                found.append(int(name))
        except OSError:
            continue
    return found


class Run(unittest.TestCase):
    def test_foreign_copies_are_told_their_place(self):
        say = 'echo "$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT"'
        done = tool("run", "-n", "2", "sh", "-c", say)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = sorted(done.stdout.splitlines())
        self.assertEqual(len(lines), 2)
        ports = set()
        for rank, line in enumerate(lines):
            own, local, world, address, port = line.split()
            self.assertEqual((own, local, world, address), (str(rank), str(rank), "2", "127.0.0.1"))
            ports.add(int(port))
        self.assertEqual(len(ports), 1)

    def test_the_first_failure_ends_all_and_nothing_is_left(self):
        mark = f"troupe-mark-{os.getpid()}-a"
        # Rank 1 fails; rank 0 waits for ever, ignores SIGTERM, and has a child of its own.
        script = ('if [ "$RANK" = 1 ]; then exit 7; fi; trap "" TERM; '
                  f'tail -f /dev/null {mark} & wait; wait; tail -f /dev/null')
        done = tool("run", "-n", "2", "--grace", "200ms", "--json", "sh", "-c", script, mark)
        self.assertEqual(done.returncode, 7, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(told["first_failure"], {"rank": 1, "cause": "exit code 7"})
        self.assertEqual(told["kind"], "foreign")
        self.assertEqual(processes_with(mark), [])

    def test_signals_are_passed_on(self):
        mark = f"troupe-mark-{os.getpid()}-b"
        script = 'trap "echo got; exit 0" TERM; echo ready; while :; do tail -f /dev/null & wait $!; done'
        with subprocess.Popen([os.path.join(BIN, "troupe"), "run", "sh", "-c", script, mark],
                              stdout=subprocess.PIPE, text=True) as started:
            self.assertEqual(started.stdout.readline(), "ready\n")
            started.send_signal(signal.SIGTERM)
            self.assertEqual(started.stdout.readline(), "got\n")
            self.assertEqual(started.wait(LIMIT_S), 128 + signal.SIGTERM)
        self.assertEqual(processes_with(mark), [])

    def test_a_troupe_program_is_its_own_director(self):
        with tempfile.TemporaryDirectory() as folder:
            summary = os.path.join(folder, "summary.json")
            done = tool("run", "-n", "3", "--json", os.path.join(BIN, "recovery_job"), "--steps", "20",
                        "--quiet", "--summary", summary)
            self.assertEqual(done.returncode, 0, done.stderr)
            told = json.loads(done.stdout)
            self.assertEqual((told["kind"], told["copies"]), ("troupe", 1))
            with open(summary, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["workers_start"], 3)

    def test_the_lanes_of_each_path_are_an_event(self):
        for transport, lanes in (("tcp", r"^tcp/lo$"), ("shm", r"^sysv/memory.*")):
            with tempfile.TemporaryDirectory() as folder:
                events = os.path.join(folder, "events.jsonl")
                done = subprocess.run([os.path.join(BIN, "recovery_job"), "--workers", "2", "--steps", "20",
                                       "--quiet", "--transport", transport, "--events", events],
                                      capture_output=True, text=True, timeout=LIMIT_S, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                warned = [line for line in done.stderr.splitlines() if "--transport shm" in line]
                self.assertEqual(len(warned), 1 if transport == "shm" else 0, done.stderr)
                with open(events, encoding="utf-8") as file:
                    opened = [e for e in map(json.loads, file) if e["event"] == "path_opened"]
                self.assertEqual(sorted(e["rank"] for e in opened), [0, 1])
                for each in opened:
                    self.assertRegex(each["lanes"], lanes)

    def test_usage_errors_are_one_line(self):
        for arguments in (["run", "no-such-program-here"], ["run"], ["nun"], ["bench", "data"],
                          ["run", "-n"]):
            done = tool(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


class Checkpoints(unittest.TestCase):
    def test_verify_finds_a_flipped_bit(self):
        with tempfile.TemporaryDirectory() as folder:
            directory = os.path.join(folder, "checkpoints")
            made = subprocess.run([os.path.join(BIN, "recovery_job"), "--steps", "40", "--quiet",
                                   "--workers", "2", "--checkpoint-dir", directory,
                                   "--checkpoint-every", "20"],
                                  capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(made.returncode, 0, made.stderr)
            listed = json.loads(tool("ckpt", "ls", directory, "--json").stdout)
            self.assertEqual([v["step"] for v in listed["versions"]], [20, 40])
            good = tool("ckpt", "verify", directory)
            self.assertEqual(good.returncode, 0, good.stdout)
            differ = tool("ckpt", "diff", directory, "20", "40")
            self.assertEqual(differ.returncode, 1, differ.stdout)
            self.flip_a_bit(directory)
            bad = tool("ckpt", "verify", directory, "--json")
            self.assertEqual(bad.returncode, 1)
            self.assertEqual(json.loads(bad.stdout)["bad"], 1)
            self.assertEqual(tool("ckpt", "ls", os.path.join(folder, "nowhere")).returncode, 2)

    @staticmethod
    def flip_a_bit(directory):
        newest = max(d for d in os.listdir(directory) if d.startswith("step-"))
        version = os.path.join(directory, newest)
        shard = next(f for f in sorted(os.listdir(version)) if f.endswith(".safetensors"))
        with open(os.path.join(version, shard), "r+b") as file:
            file.seek(-100, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 4]))


class Doctor(unittest.TestCase):
    CHECKS = ["libraries", "loopback device", "UCX transports", "UCX environment", "lanes", "message time",
              "bandwidth", "all-reduce", "GPUs", "master address", "ranks", "shared memory", "open files",
              "memory", "dataset"]

    def test_each_check_is_a_line_and_two_processes_talk(self):
        done = tool("doctor", "--json")
        told = json.loads(done.stdout)
        self.assertEqual([c["check"] for c in told["checks"]], self.CHECKS)
        self.assertEqual(done.returncode, 0 if told["healthy"] else 1)
        by_name = {c["check"]: c for c in told["checks"]}
        self.assertEqual(by_name["lanes"]["text"], "between two processes: tcp/lo")
        self.assertIn("half round trip", by_name["message time"]["text"])
        for each in told["checks"]:
            self.assertEqual(each["remedy"] is None, each["verdict"] == "ok", each)
        text = tool("doctor").stdout.splitlines()
        self.assertEqual(len(text), len(self.CHECKS))
        for line in text:
            self.assertIn(line.split()[0], ("ok", "warn", "FAIL"))
        self.assertEqual(processes_with("doctor\0--probe"), [])

    def test_workers_sum_known_values(self):
        told = json.loads(tool("doctor", "--workers", "3", "--json").stdout)
        found = {c["check"]: c for c in told["checks"]}["all-reduce"]
        self.assertIn(found["verdict"], ("ok", "warn"), found)  # slow is a warning
        self.assertRegex(found["text"], r"^3 workers, sums right; GB/s between 0-1 [\d.]+, 0-2 [\d.]+, "
                                        r"1-2 [\d.]+, slowest \d-\d")
        self.assertEqual(tool("doctor", "--workers", "1").returncode, 2)

    def test_memory_that_is_refused_is_named(self):
        def no_large_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        done = subprocess.run([os.path.join(BIN, "troupe"), "doctor"], text=True, capture_output=True,
                              timeout=LIMIT_S, check=False, preexec_fn=no_large_files)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, "FAIL +all-reduce +no sum in shared memory: .*File too large; "
                                      "remedy: allow shared memory")

    def test_what_is_wrong_is_named_with_its_remedy(self):
        environment = dict(os.environ, RANK="4", WORLD_SIZE="4", UCX_TLS="rc")
        done = subprocess.run([os.path.join(BIN, "troupe"), "doctor", "--data", "/nowhere"], text=True,
                              capture_output=True, timeout=LIMIT_S, check=False, env=environment)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, "FAIL +ranks +RANK=4 is not within WORLD_SIZE=4; remedy: ")
        self.assertRegex(done.stdout, "warn +UCX environment +UCX_TLS=rc")
        self.assertRegex(done.stdout, "warn +dataset +not in /nowhere")
        self.assertRegex(done.stdout, "ok +lanes +between two processes: tcp/lo")


class Bench(unittest.TestCase):
    """Rows and fields only: times on a busy machine prove nothing."""

    def rows_of(self, *arguments):
        done = tool("bench", *arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(told["bench"], arguments[0])
        self.assertGreaterEqual(told["machine"]["cores"], 1)
        return told["rows"]

    def test_recovery(self):
        rows = self.rows_of("recovery", "--quick", "--detect-after", "500ms")
        self.assertEqual([(r["system"], r["fault"], r["workers"]) for r in rows],
                         [("troupe", "SIGKILL", 2), ("troupe", "SIGSTOP", 2),
                          ("restart", "SIGKILL of all", 2)])
        for row in rows[:2]:
            self.assertTrue(row["survivors_kept"])
            self.assertLessEqual(row["steps_lost"]["max"], 1)
            self.assertGreater(row["detected_ms"]["p50"], 0)
            self.assertGreater(row["recovered_ms"]["p50"], row["detected_ms"]["p50"])
            self.assertAlmostEqual(row["state_bytes"], 1 << 20, delta=1 << 16)
        self.assertEqual(processes_of("recovery_job"), [])

    def test_allreduce(self):
        rows = self.rows_of("allreduce", "--quick")
        sizes = [1 << 12, 1 << 20]
        by_system = {}
        for row in rows:
            by_system.setdefault((row["system"], row["canonical"]), []).append((row["ranks"], row["bytes"]))
            self.assertGreater(row["time_us"]["p50"], 0)
            self.assertGreaterEqual(row["time_us"]["p99"], row["time_us"]["p50"])
            self.assertAlmostEqual(row["algbw_gb_s"] * row["time_us"]["p50"] * 1000 / row["bytes"], 1)
            if row["system"] == "memcpy":
                self.assertEqual(row["busbw_gb_s"], row["algbw_gb_s"])
            else:
                moved = 2 * (row["ranks"] - 1) / row["ranks"]
                self.assertAlmostEqual(row["busbw_gb_s"] / row["algbw_gb_s"], moved)
        for canonical in (True, False):
            self.assertEqual(by_system.pop(("troupe-shm", canonical)),
                             [(ranks, size) for ranks in (2, 4, 3) for size in sizes])
        self.assertEqual(sorted(by_system.pop(("memcpy", False))), [(r, s) for r in (1, 2) for s in sizes])
        for (system, canonical), places in by_system.items():  # where their libraries are installed
            self.assertIn(system, ("gloo", "openmpi", "openmpi-kept-memory"))
            self.assertFalse(canonical)
            self.assertEqual(places, [(ranks, size) for ranks in (2, 4) for size in sizes])
        for program in ("allreduce_shm", "allreduce_memcpy", "allreduce_gloo", "allreduce_openmpi"):
            self.assertEqual(processes_of(program), [])

    def test_message(self):
        rows = self.rows_of("message", "--quick")
        by_system = {}
        for row in rows:
            if "urgent" not in row:
                by_system.setdefault(row["system"], []).append((row["lane"], row["wake"], row["bytes"]))
        urgent = [(r["system"], r["lane"], r["wake"], r["urgent"]) for r in rows if "urgent" in r]
        self.assertEqual(urgent, [("troupe", lane, wake, path)
                                  for lane in ("tcp", "shm") for wake in ("sleep", "poll")
                                  for path in ("idle", "beside 64 MiB of bulk")])
        everywhere = [(lane, wake, size) for lane in ("tcp", "shm") for wake in ("sleep", "poll")
                      for size in (8, 100, 1 << 20)]
        self.assertEqual(by_system.pop("troupe"), everywhere)
        self.assertEqual(by_system.pop("ucx_perftest"), everywhere)
        for system, places in by_system.items():  # where their libraries are installed
            self.assertIn(system, ("caf_io", "caf_io_sharing", "grpc"))
            self.assertEqual(places, [("tcp", "sleep", size) for size in (8, 100, 1 << 20)])
        for row in rows:
            if row["bytes"] == 8:
                self.assertGreater(row["half_rtt_us"]["p50"], 0)
                self.assertGreaterEqual(row["half_rtt_us"]["p99"], row["half_rtt_us"]["p50"])
            else:
                self.assertGreater(row["messages_per_s"], 0)
                self.assertAlmostEqual(row["bytes_per_s"] / row["messages_per_s"], row["bytes"], delta=1)
        for program in ("message_troupe", "message_ucx", "message_caf_io", "message_grpc"):
            self.assertEqual(processes_of(program), [])

    def test_overlap(self):
        rows = self.rows_of("overlap", "--quick")
        self.assertEqual([(r["backward"], r["shards"], r["bucket"] >> 20) for r in rows],
                         [("stand-in", 2, 0), ("stand-in", 2, 1), ("stand-in", 2, 4), ("stand-in", 2, 16),
                          ("stand-in", 8, 0), ("stand-in", 8, 4), ("cpu", 2, 0), ("cpu", 2, 4)])
        for row in rows:
            self.assertGreater(row["allreduce_ms"], 0)
            self.assertGreaterEqual(row["step_ms"]["p99"], row["step_ms"]["p50"])

    def test_step(self):
        if not os.path.isdir("/usr/share/datasets/fashion-mnist"):
            self.skipTest("the dataset is not installed")
        rows = self.rows_of("step", "--quick")
        self.assertEqual([(r["system"], r["workers"], r["global_batch"]) for r in rows],
                         [(s, w, b) for b in (128, 1024)
                          for s, w in (("bare", 1), ("troupe", 1), ("troupe", 2))])
        for row in rows:
            self.assertGreater(row["samples_per_s"], 0)
            self.assertGreaterEqual(row["step_ms"]["p99"], row["step_ms"]["p50"])


def main():
    global BIN
    BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()


if __name__ == "__main__":
    main()
