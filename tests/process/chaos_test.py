#!/usr/bin/env python3
"""`troupe chaos` on a real program, and on fakes that leave things behind or end with other bits.

A fake is a script that writes events and a summary as a Troupe program does; runs with a fault plan behave
otherwise than the run without.
Usage: chaos_test.py DIRECTORY_OF_PROGRAMS [TEST...]
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from harness import until

BIN = ""
LIMIT_S = 600

FAKE = """#!{python}
import json, os, signal, subprocess, sys
given = dict(zip(sys.argv[1:], sys.argv[2:]))
struck = os.path.getsize(given["--fault-plan"]) > 0 if "--fault-plan" in given else False
summary = dict(state_digest="aa", weights_digest="bb", steps_committed=5, goodput=1.0, restarts=0)
os.makedirs(given["--checkpoint-dir"] + "/step-000000000005")
def say(**event):
    with open(given["--events"], "a") as file:
        file.write(json.dumps(event) + "\\n")
say(t=0.0, event="job_started", workers=2)
if struck or not {only_when_struck}:
    {behaviour}
say(t=1.0, event="job_finished")
with open(given["--summary"], "w") as file:
    json.dump(summary, file)
"""


def tool(*arguments):
    return subprocess.run([os.path.join(BIN, "troupe"), "chaos", *arguments], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)


def commands_with(mark):
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
                if mark in file.read() and int(name) != os.getpid():
                    found.append(int(name))
        except (OSError, ValueError):
            continue
    return found


class Chaos(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="troupe-chaos-test-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def fake(self, behaviour, only_when_struck=True):
        name = self.path("fake")
        with open(name, "w", encoding="utf-8") as file:
            file.write(FAKE.format(python=sys.executable, behaviour=behaviour,
                                   only_when_struck=only_when_struck))
        os.chmod(name, 0o755)
        return name

    def wrong(self, behaviour, *texts):
        """One run of a fake with that behaviour: it is found, named, and its traces are kept."""
        done = tool("-n", "1", "--keep", self.path("runs"), "--faults", "kill", "--", self.fake(behaviour))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertIn("--first-run 1 --seed 1", done.stderr)
        self.assertTrue(os.path.exists(self.path("runs/run-001/plan.toml")))
        self.assertTrue(os.path.exists(self.path("runs/run-001/events-1.jsonl")))
        return done

    # --- the real program ---

    def test_three_runs_end_with_three_equal_digests(self):
        done = tool("-n", "3", "--json", "--report", self.path("report.json"), "--mtbf", "1s", "--",
                    os.path.join(BIN, "02_tiny_model"), "--workers", "3", "--steps", "10000",
                    "--detect-after", "2s")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["equal"], told["leaks"], told["right"]), (3, 0, True))
        self.assertEqual(len(told["runs"]), 3)
        for run in told["runs"]:
            self.assertTrue(run["faults"])
            self.assertEqual((run["exit"], run["findings"]), ("0", []))
        self.assertTrue(any(fault["due"] for run in told["runs"] for fault in run["faults"]))
        with open(self.path("report.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), told)

    # --- fakes ---

    def test_a_well_behaved_fake_is_right(self):
        done = tool("-n", "2", "--", self.fake("pass"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 of 2 equal digests, 0 leaks", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_another_digest_is_found(self):
        self.wrong("summary['state_digest'] = 'cc'", "state_digest cc, the fault-free run's is aa")

    def test_a_missing_summary_is_found(self):
        self.wrong("sys.exit(0)", "no summary was written")

    def test_a_failure_is_found_with_its_last_line(self):
        self.wrong("print('spent'); sys.exit(3)", "exit code 3: spent")

    def test_a_file_left_behind_is_found(self):
        self.wrong("open(os.environ['TMPDIR'] + '/forgotten', 'w').close()", "temporary file", "forgotten")

    def test_an_unfinished_checkpoint_is_found(self):
        self.wrong("os.mkdir(given['--checkpoint-dir'] + '/.partial-x')", "unfinished checkpoint",
                   ".partial-x")

    def test_a_process_left_behind_is_found_and_ended(self):
        mark = f"troupe-chaos-left-{os.getpid()}"
        self.wrong(f"subprocess.Popen(['tail', '-f', '/dev/null', '{mark}'])", "was left")
        self.assertEqual(commands_with(mark), [])

    def test_a_run_that_does_not_end_is_killed_and_named(self):
        done = tool("-n", "2", "--stop-on-first", "--time-limit", "3s", "--keep", self.path("runs"),
                    "--faults", "kill", "--", self.fake("signal.pause()"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("did not end within its time limit", done.stderr)
        self.assertIn("0 of 1 equal digests", done.stdout)
        self.assertEqual(commands_with(self.path("fake")), [])

    def test_an_interruption_ends_the_job_and_tells_what_was_done(self):
        reached = self.path("reached")
        program = self.fake(f"open('{reached}', 'w').close(); signal.pause()")
        with subprocess.Popen([os.path.join(BIN, "troupe"), "chaos", "-n", "3", "--json", "--faults", "kill",
                               "--", program],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
            until(lambda: os.path.exists(reached), "the struck run waits")
            started.send_signal(signal.SIGINT)
            out, _ = started.communicate(timeout=LIMIT_S)
            self.assertEqual(started.returncode, 130)
        self.assertTrue(json.loads(out)["interrupted"])
        self.assertEqual(commands_with(program), [])

    # --- bad input ---

    def test_what_is_wrong_is_one_line(self):
        kept = self.path("kept")
        os.mkdir(kept)
        with open(os.path.join(kept, "something"), "w", encoding="utf-8"):
            pass
        failing = self.fake("sys.exit(5)", only_when_struck=False)
        for arguments in (["--", "no-such-program-here"], ["--keep", kept, "--", failing],
                          ["--report", self.path("no/where"), "--", failing], ["--", failing],
                          ["--faults", "kil", "--", failing], ["--", failing, "--events", "x"], []):
            done = tool(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stdout, "", arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertTrue(done.stderr.startswith("troupe"), done.stderr)


def main():
    global BIN
    BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()


if __name__ == "__main__":
    main()
