"""Jobs on two hosts: a director with workers, and workers that join from elsewhere.

The hosts are network namespaces with a cable between them; a joiner has process ids of its own, too, so that
nothing is shared with the director's host: no memory, no loopback device, no process that one could see or
signal. On a `Host` joiners share all that with each other.
"""

import os
import signal
import subprocess

import harness
from harness import Job, ProcessTest, say, until
from namespaces import Cable

LONG = 3000  # steps: still under way when a late joiner has come
DETECT_MS = 2000
DATA = "/usr/share/datasets/fashion-mnist"


def only_child(pid):
    """None: it has none yet."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        children = file.read().split()
    return int(children[0]) if children else None


class HostsTest(ProcessTest):
    def setUp(self):
        super().setUp()
        self.cable = Cable().__enter__()
        self.addCleanup(self.cable.__exit__)
        with open(os.path.join(self.out, "token"), "w", encoding="ascii") as file:
            file.write("a secret of both hosts")

    def inside(self, side, *command):
        return [*self.cable.inside(side), *command]

    def direct(self, steps, *options, detect_ms=DETECT_MS, joiners=1, local=1):
        options = [*harness.USUAL, "--detect-after", f"{detect_ms}ms", "--steps", str(steps),
                   "--workers", str(joiners + local), "--external", str(joiners), "--listen", "10.83.0.1:0",
                   "--network", self.cable.device("a"), "--token-file", os.path.join(self.out, "token"),
                   "--checkpoint-dir", "ck", "--checkpoint-every", "500", *options]
        number = self.numbers + 1
        outputs = ["--events", os.path.join(self.out, f"events{number}.jsonl"),
                   "--summary", os.path.join(self.out, f"summary{number}.json")]
        return Job(self, command=self.inside("a", harness.program, *options, *outputs))

    def join(self, director, *options, instead=None, host=None):
        """`instead`: what the joiner sees where the dataset is. `host`: where it has neighbours."""
        endpoint = director.event("job_started")["endpoint"]
        command = [harness.program, "--join", endpoint, "--network", self.cable.device("b"),
                   "--detect-after", f"{DETECT_MS}ms", "--token-file", os.path.join(self.out, "token"),
                   *options]
        if instead:
            command = ["sh", "-c", f'mount --bind {instead} {DATA} && exec "$@"', "sh", *command]
        alone = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
        return Job(self, command=self.inside("b", *(host.inside() if host else alone), *command))

    def kill(self, joiner):
        """The worker itself: the only child of what started it."""
        worker = only_child(joiner.pid)
        say(f"    -> SIGKILL to the joiner ({worker})")
        os.kill(worker, signal.SIGKILL)
        joiner.process.wait(harness.DEADLINE_S)

    def in_steps(self, director):
        director.event("checkpoint_written", step=500)

    def by(self, result, *kinds):
        self.assertEqual([e["collective"] for e in result.named("generation_started")], list(kinds))


class Host:
    """Process ids, and a view of them, that joiners share; the first process waits to be told to end."""

    def __init__(self, case):
        self.first = subprocess.Popen(
            case.inside("b", "unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "cat"),
            stdin=subprocess.PIPE)
        case.addCleanup(self.end)
        until(lambda: self.waits(), "the host's first process is there")

    def waits(self):
        child = only_child(self.first.pid)
        if child is None:
            return False
        with open(f"/proc/{child}/comm", encoding="ascii") as file:
            return file.read().strip() == "cat"

    def inside(self):
        return ("nsenter", "--target", str(only_child(self.first.pid)), "--pid", "--mount", "--")

    def end(self):
        self.first.stdin.close()
        self.first.wait(harness.DEADLINE_S)
