"""Probes: processes of the fault tests that take commands by line and report in JSON lines.

Flow:    test -> Probe.tell(command) -> process -> Probe.reports -> Probe.wait(...)
Owns:    each probe's process; a Watch looks for what a round of probes left behind.
Rules:   as harness.py: events with generous deadlines, no asserted durations.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid

from harness import (MARK, SLOWNESS, in_use_by_others, listening_ports, marked_processes, say,
                     sysv_segments, until)

DEADLINE_S = 30.0 * SLOWNESS


def now_ms():
    """The clock that the probes report by."""
    return time.monotonic() * 1000.0


class Late(AssertionError):
    """Something did not come: the cell hangs."""


class Probe:
    """One process. Its reports are read as they come."""

    def __init__(self, name, command, watch, prefix=()):
        self.name, self.reports = name, []
        self._fresh = threading.Condition()
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*prefix, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, MARK: watch.mark, "TMPDIR": watch.tmp},
        )
        watch.probes.append(self)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        ready = self.wait("ready")
        self.incarnation, self.address = ready["incarnation"], ready["address"]

    def _read(self):
        for line in self.process.stdout:
            try:
                report = json.loads(line)
            except ValueError:
                continue  # a line that a killed process did not finish
            with self._fresh:
                self.reports.append(report)
                self._fresh.notify_all()
        with self._fresh:
            self.reports.append({"event": "ended", "t": now_ms()})
            self._fresh.notify_all()

    @property
    def pid(self):
        return self.process.pid

    def errors(self):
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()

    def tell(self, *commands):
        try:
            self.process.stdin.write("".join(c + "\n" for c in commands).encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; what it reported says how

    def count(self, event, **fields):
        with self._fresh:
            return len(self._found(event, fields))

    def latest(self, event, otherwise):
        with self._fresh:
            return next((r for r in reversed(self.reports) if r["event"] == event), otherwise)

    def _found(self, event, fields):
        return [r for r in self.reports
                if r["event"] == event and all(r.get(k) == v for k, v in fields.items())]

    def wait(self, event, count=1, deadline_s=DEADLINE_S, **fields):
        """The `count`th report of that event."""
        def there():
            found = self._found(event, fields)
            if len(found) >= count:
                return found[count - 1]
            if self.reports and self.reports[-1]["event"] == "ended":
                raise Late(f"{self.name} ended before '{event}' {fields}: {self.errors() or 'no words'}")
            return None

        with self._fresh:
            if not self._fresh.wait_for(there, timeout=deadline_s):
                raise Late(f"{self.name}: no '{event}' {fields} x{count} within {deadline_s:g} s")
            return there()

    def decision(self, deadline_s=DEADLINE_S):
        """When it knew: its verdict, or the goodbye of the other one."""
        def there():
            return [r for r in self._found("told", {})
                    if r["what"] == "verdict" or (r["what"] == "path_lost" and r["code"] == "actor_stopped")]

        with self._fresh:
            if not self._fresh.wait_for(there, timeout=deadline_s):
                told = self._found("told", {})
                raise Late(f"{self.name} decides nothing within {deadline_s:g} s; told {told}")
            return there()[0]

    def told(self):
        with self._fresh:
            return self._found("told", {})

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, deadline_s=DEADLINE_S):
        """Waits for its exit."""
        try:
            return self.process.wait(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            raise Late(f"{self.name} does not end within {deadline_s:g} s") from None

    def destroy(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            try:
                stream.close()
            except BrokenPipeError:
                pass


class Watch:
    """A round: its probes, and what is left of them afterwards."""

    def __enter__(self):
        self.mark, self.probes = uuid.uuid4().hex, []
        self.tmp = tempfile.mkdtemp(prefix="troupe-probes-")
        self.shm, self.sysv = set(os.listdir("/dev/shm")), set(sysv_segments())
        self.ports = listening_ports()
        return self

    def __exit__(self, *_):
        for probe in self.probes:
            probe.destroy()
        shutil.rmtree(self.tmp, ignore_errors=True)

    def left_behind(self):
        """In words; empty: nothing. Every probe has been told to end."""
        left = []
        try:
            until(lambda: not marked_processes(self.mark), "no process is left", DEADLINE_S)
        except AssertionError:
            left.append(f"processes {marked_processes(self.mark)}")
        pids = {probe.pid for probe in self.probes}
        names = set(os.listdir("/dev/shm")) - self.shm
        left += [f"/dev/shm/{n}" for n in names if not in_use_by_others(f"/dev/shm/{n}", self.mark)]
        left += [f"System V segment {i}" for i, creator in sysv_segments().items()
                 if i not in self.sysv and creator in pids]
        left += [f"file {n} in TMPDIR" for n in os.listdir(self.tmp)]
        return left


def hold(span_ms):
    """For as long as an injected fault lasts."""
    end = now_ms() + span_ms
    until(lambda: now_ms() >= end, "time passes")


def strike(probe, number):
    """Sends the signal; returns when."""
    at = now_ms()
    probe.signal(number)
    return at


def in_words(told, since_ms):
    """path_lost (path_lost) 12, down (path_lost) 12, ..."""
    return ", ".join(f"{r['what']} ({r['code']}) {max(0.0, r['t'] - since_ms):.0f}" for r in told)


def kill_quietly(probe):
    if probe.process.poll() is None:
        probe.signal(signal.SIGKILL)
        probe.end()


__all__ = ["DEADLINE_S", "Late", "Probe", "Watch", "hold", "in_words", "kill_quietly", "now_ms", "say",
           "strike"]
