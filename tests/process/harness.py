"""Harness of the process tests: real processes of a real program, watched from outside.

Flow:    test -> Job (one command) -> Result (exit code, lines, summary, events); every command and what it
         ended with is printed.
Owns:    one temporary tree a test: `work` (the program's current directory), `tmp` (its TMPDIR), `out` (what
         was asked for: events, summary, terminal output). All processes carry a mark in their environment.
Fails:   a condition that does not come within its deadline ends the test with what was seen.
Rules:   no sleeps of a chosen length and no timed assertions: a test waits for an event, a process's exit or
         a file's content. Deadlines are generous: they end hangs, they measure nothing.
Leaves:  nothing: processes with the mark are killed at the end, whatever happened, and by their ids only.
"""

import argparse
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import uuid

# How many times as long everything may take, as under sanitizers.
SLOWNESS = float(os.environ.get("TROUPE_TEST_SLOWNESS", "1"))
DEADLINE_S = 120.0 * SLOWNESS
POLL_S = 0.01
MARK = "TROUPE_TEST_MARK"
PROGRAM_NAME = "fashion_mnist"
USUAL = ["--global-batch", "128", "--seed", "7", "--quiet"]
VERSION = re.compile(r"step-\d{12}$")

program = None  # set by `main`
clean_digests = {}  # (steps, options) -> state_digest of a run without faults

# A pause between two looks that wakes early for nobody; never longer than POLL_S.
_pacer = threading.Event()


def say(text):
    print(text, flush=True)


def until(condition, what, deadline_s=DEADLINE_S):
    """The first true value of `condition()`."""
    rounds = int(deadline_s / POLL_S)
    for _ in range(rounds):
        value = condition()
        if value:
            return value
        _pacer.wait(POLL_S)
    raise AssertionError(f"{what}: not within {deadline_s:g} s")


def marked_processes(mark):
    """Ids of living processes with the mark (zombies have no environment any more)."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if f"{MARK}={mark}".encode() in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue
    return sorted(found)


def in_use_by_others(path, mark):
    ours = set(marked_processes(mark))
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in ours:
            continue
        try:
            with open(f"/proc/{name}/maps", encoding="utf-8", errors="replace") as file:
                if path in file.read():
                    return True
        except OSError:
            continue
    return False


def sysv_segments():
    """Shared-memory id -> process id of its creator."""
    with open("/proc/sysvipc/shm", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return {int(row[1]): int(row[4]) for row in rows}


def listening_ports():
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        with open(table, encoding="ascii") as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                if fields[3] == "0A":
                    ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


def last_state(pid):
    """The letter of /proc/PID/stat: R, S, T (stopped), Z..."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


class Result:
    def __init__(self, code, out, err, events, summary):
        self.code, self.out, self.err, self.events, self.summary = code, out, err, events, summary

    @property
    def digest(self):
        return self.summary["state_digest"]

    @property
    def failures(self):
        return self.summary["failures"]

    def named(self, event):
        return [e for e in self.events if e["event"] == event]


class Job:
    """One command of the program. Starts at once."""

    def __init__(self, case, *options, command=None, environment=None, own_group=False):
        self.case = case
        self.number = case.next_number()
        self.events_path = os.path.join(case.out, f"events{self.number}.jsonl")
        self.summary_path = os.path.join(case.out, f"summary{self.number}.json")
        options = [str(o) for o in options]
        # Bad input is tested without outputs: nothing of them may be needed for a refusal.
        outputs = ["--events", self.events_path, "--summary", self.summary_path]
        self.command = command or [program, *options, *outputs]
        say(f"  $ {shlex.join([PROGRAM_NAME, *self.command[1:]])}")
        streams = [open(os.path.join(case.out, f"{name}{self.number}"), "wb")
                   for name in ("stdout", "stderr")]
        self.process = subprocess.Popen(
            self.command,
            cwd=case.work,
            env={**os.environ, MARK: case.mark, "TMPDIR": case.tmp, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=streams[0],
            stderr=streams[1],
            start_new_session=own_group,
        )
        for stream in streams:
            stream.close()
        case.jobs.append(self)

    @property
    def pid(self):
        return self.process.pid

    def lines(self, name):
        with open(os.path.join(self.case.out, f"{name}{self.number}"), encoding="utf-8") as file:
            return file.read().splitlines()

    def events(self):
        """Every whole line so far."""
        try:
            with open(self.events_path, encoding="utf-8") as file:
                return [json.loads(line) for line in file.read().split("\n")[:-1]]
        except FileNotFoundError:
            return []

    def event(self, name, count=1, deadline_s=DEADLINE_S, **fields):
        """The `count`th event of that name with these fields, once it is there."""

        def look():
            found = [
                e
                for e in self.events()
                if e["event"] == name and all(e.get(key) == value for key, value in fields.items())
            ]
            if len(found) >= count:
                return found[count - 1]
            if self.process.poll() is not None and len(found) < count:
                raise AssertionError(f"ended with {self.process.returncode} before event {name} {fields}; "
                                     f"standard error: {self.lines('stderr')}")
            return None

        return until(look, f"event {name} {fields} x{count}", deadline_s)

    def workers(self):
        """Rank -> process id of the newest process, as the events tell."""
        return {e["rank"]: e["pid"] for e in self.events() if e["event"] == "worker_started"}

    def send(self, number):
        say(f"    -> {signal.Signals(number).name} to the director ({self.pid})")
        self.process.send_signal(number)

    def strike(self, rank, number=signal.SIGKILL):
        pid = self.workers()[rank]
        say(f"    -> {signal.Signals(number).name} to worker {rank} ({pid})")
        os.kill(pid, number)
        return pid

    def end(self, deadline_s=DEADLINE_S):
        try:
            code = self.process.wait(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            self.case.fail(f"still running after {deadline_s:g} s; standard error: {self.lines('stderr')}")
        summary = None
        if os.path.exists(self.summary_path):
            with open(self.summary_path, encoding="utf-8") as file:
                summary = json.load(file)
        result = Result(code, self.lines("stdout"), self.lines("stderr"), self.events(), summary)
        self.tell(result)
        return result

    def tell(self, result):
        say(f"    exit code {result.code}")
        for line in result.err:
            say(f"    | {line}")
        if result.summary:
            s = result.summary
            say(
                f"    generations {s['generations']}, steps {s['steps_committed']}, "
                f"survivors_kept {s['survivors_kept']}, digest {s['state_digest'] or '-'}"
            )


class ProcessTest(unittest.TestCase):
    """A test with its own tree; at its end it looks for leftovers."""

    maxDiff = None
    kept_in_work = {"ck"}  # what the test asked for in the program's current directory

    def setUp(self):
        self.mark = uuid.uuid4().hex
        self.jobs = []
        self.numbers = 0
        self.root = tempfile.mkdtemp(prefix="troupe-process-")
        self.work, self.tmp, self.out = (os.path.join(self.root, n) for n in ("work", "tmp", "out"))
        for path in (self.work, self.tmp, self.out):
            os.mkdir(path)
        self.shm_before = set(os.listdir("/dev/shm"))
        self.sysv_before = set(sysv_segments())
        say(f"\n{self.id().rsplit('.', 1)[1]}: {self.shortDescription() or ''}")

    def tearDown(self):
        for job in self.jobs:
            if job.process.poll() is None:
                job.process.kill()
                job.process.wait()
        for pid in marked_processes(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.root, ignore_errors=True)

    def next_number(self):
        self.numbers += 1
        return self.numbers

    # --- running ---

    def start(self, *options, **how):
        # A lease that a loaded machine keeps; tests of detection give their own.
        lease = [] if "--detect-after" in options else ["--detect-after", "2s"]
        return Job(self, *USUAL, *lease, *options, **how)

    def run_job(self, *options, deadline_s=DEADLINE_S, **how):
        result = self.start(*options, **how).end(deadline_s)
        self.assert_nothing_left()
        return result

    def clean_digest(self, steps, *options):
        key = (steps, options)
        if key not in clean_digests:
            result = self.run_job("--steps", steps, "--workers", 2, *options)
            self.assertEqual(result.code, 0)
            self.assertEqual(result.failures, [])
            clean_digests[key] = result.digest
        return clean_digests[key]

    # --- judging ---

    def assert_finished(self, result, steps, digest=None, survivors=True):
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(result.summary["exit_reason"], "finished")
        self.assertEqual(result.summary["steps_committed"], steps)
        self.assertEqual(result.summary["samples_committed"], steps * 128)
        if survivors:
            self.assertTrue(result.summary["survivors_kept"])
        if digest:
            self.assertEqual(result.digest, digest)

    def assert_failures(self, result, expected):
        """`expected`: (kind, rank, source, steps_lost at most), in the order of detection."""
        seen = [(f["kind"], f["rank"], f["source"]) for f in result.failures]
        say(f"    failures {[(*s, f['steps_lost']) for s, f in zip(seen, result.failures)]}")
        self.assertEqual(seen, [e[:3] for e in expected])
        for failure, (_, _, _, lost) in zip(result.failures, expected):
            self.assertLessEqual(failure["steps_lost"], lost)
            self.assertIsNotNone(failure["recovered_ms"])
            self.assertTrue(failure["cause"])

    def assert_one_line(self, result, code, *parts):
        """One line on standard error that starts with the program's name and holds every part."""
        self.assertEqual(result.code, code, result.err)
        self.assertEqual(len(result.err), 1, result.err)
        self.assertTrue(result.err[0].startswith(f"{PROGRAM_NAME}: "), result.err[0])
        self.assertEqual(result.out, [])
        for part in parts:
            self.assertIn(part, result.err[0])

    def processes(self):
        return marked_processes(self.mark)

    def assert_nothing_left(self, deadline_s=DEADLINE_S):
        until(lambda: not self.processes(), "no process of the program is left", deadline_s)
        new = set(os.listdir("/dev/shm")) - self.shm_before
        left = [n for n in new if not in_use_by_others(f"/dev/shm/{n}", self.mark)]
        self.assertEqual(left, [], "entries in /dev/shm")
        pids = {job.pid for job in self.jobs}
        for job in self.jobs:
            pids |= {e["pid"] for e in job.events() if e["event"] == "worker_started"}
        segments = {i: p for i, p in sysv_segments().items() if i not in self.sysv_before and p in pids}
        self.assertEqual(segments, {}, "System V segments (id: creator)")
        ports = {int(e["endpoint"].rsplit(":", 1)[1])
                 for j in self.jobs for e in j.events() if "endpoint" in e}
        self.assertEqual(ports & listening_ports(), set(), "listening ports")
        self.assertEqual(os.listdir(self.tmp), [], "files in TMPDIR")
        self.assertEqual(set(os.listdir(self.work)) - self.kept_in_work, set(),
                         "files in the current directory")

    def assert_versions_only(self, directory="ck", journal=False):
        """Finished versions, and a journal only where a director has died."""
        names = set(os.listdir(os.path.join(self.work, directory)))
        self.assertEqual("journal.json" in names, journal, names)
        names.discard("journal.json")
        for name in names:
            self.assertRegex(name, VERSION)
            self.assertIn("manifest.json", os.listdir(os.path.join(self.work, directory, name)))
        return sorted(names)

    def tree(self, directory):
        """Every file below `directory` with its bytes."""
        found = {}
        for folder, _, files in os.walk(os.path.join(self.work, directory)):
            for name in files:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.work)] = file.read()
        return found

    def kill_all(self):
        """SIGKILL to every process of the program, the director first."""
        pids = self.processes()
        say(f"    -> SIGKILL to all: {pids}")
        for pid in sorted(pids, key=lambda p: p not in [j.pid for j in self.jobs]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for job in self.jobs:
            job.process.wait()


def seeded(number):
    """Random choices of a test that can be repeated."""
    say(f"  (seed {number})")
    return random.Random(number)


def main():
    global program
    parser = argparse.ArgumentParser(description="Process tests; further arguments are unittest's.")
    parser.add_argument("--program", required=True, help="the fashion_mnist to test")
    known, rest = parser.parse_known_args()
    program = os.path.abspath(known.program)
    unittest.main(module="__main__", argv=[sys.argv[0], *rest], verbosity=2)
