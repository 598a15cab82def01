"""Bad input: one line that names what is wrong and what is accepted, the exit code, and nothing happened."""

import ctypes
import gzip
import json
import os
import signal
import socket
import struct
import subprocess

import harness
from harness import Job, ProcessTest


def idx(kind, sizes, content, magic=None):
    """An IDX file's bytes: `kind` 1 labels, 3 images."""
    head = struct.pack(">I", magic if magic is not None else 0x0800 + kind)
    return head + b"".join(struct.pack(">I", n) for n in sizes) + content


class Xxh128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def manifest_digest(manifest):
    """The digest that a manifest holds of the rest of itself."""
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_128bits.restype = Xxh128
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    rest = {key: value for key, value in manifest.items() if key != "manifest_digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    found = library.XXH3_128bits(text, len(text))
    return f"{found.high:016x}{found.low:016x}"


class BadInput(ProcessTest):
    kept_in_work = {"given"}  # what `write` makes

    def refused(self, code, options, *parts, usual=True, kept=True):
        """One line, that exit code, and not a trace: no process, no file, no checkpoint directory."""
        before = self.tree(".")
        job = (self.start if usual else lambda *o: Job(self, *o))(*options)
        result = job.end()
        self.assert_one_line(result, code, *parts)
        self.assertEqual(result.named("worker_started"), [])
        if kept:
            self.assertEqual(self.tree("."), before)
            self.assertFalse(os.path.exists(os.path.join(self.work, "ck")))
        self.assert_nothing_left()
        return result

    def write(self, name, content):
        os.makedirs(os.path.join(self.work, "given"), exist_ok=True)
        path = os.path.join(self.work, "given", name)
        with open(path, "wb") as file:
            file.write(content)
        return os.path.join("given", name)

    # --- options ---

    def test_options(self):
        """options, values and combinations that cannot be"""
        ck = ["--checkpoint-dir", "ck"]
        for options, parts in [
            (["--bogus"], ["--bogus", "unknown option"]),
            (["--worker", "3"], ["--worker", "did you mean --workers?"]),
            (["positional"], ["positional", "unexpected"]),
            (["--steps"], ["--steps", "value is missing"]),
            (["--steps", "ten"], ["--steps ten", "accepted"]),
            (["--workers", "0"], ["--workers 0", "accepted: 1 to"]),
            (["--workers", "9"], ["--workers 9", "8 of --shards", "accepted: 1 to 8"]),
            (["--workers-min", "3"], ["--workers-min 3", "accepted"]),
            (["--steps", "5", "--epochs", "1"], ["--epochs 1", "--steps 5"]),
            (["--resume", "100"], ["--resume 100", "--checkpoint-dir"]),
            (["--detect-after", "5"], ["--detect-after 5", "duration"]),
            (["--detect-after", "1ms"], ["--detect-after 1ms", "accepted"]),
            (["--listen", "127.0.0.1:99999"], ["--listen 127.0.0.1:99999", "HOST:PORT"]),
            (["--device", "cuda:0"], ["--device cuda:0", "accepted"]),
            (["--token-file", "given/none"], ["--token-file given/none", "No such file", "accepted"]),
        ]:
            with self.subTest(options=options):
                job_options = [*options, *ck] if options[:1] != ["--resume"] else options
                self.refused(2, job_options, *parts, usual="--detect-after" not in options)

    def test_global_batch(self):
        """a global batch that is not divisible into shards: the line says what is"""
        job = Job(self, "--global-batch", "100", "--checkpoint-dir", "ck")
        self.assert_one_line(job.end(), 2, "--global-batch 100", "8 shards", "96 or 104", "multiples of 8")
        self.assertFalse(os.path.exists(os.path.join(self.work, "ck")))

    def test_faults(self):
        """unknown faults, incomplete ones, and those that can never strike"""
        for spec, parts in [
            ("explode@step=3", ["explode@step=3", "unknown kind", "accepted: kill"]),
            ("kil@step=3", ["did you mean kill?"]),
            ("clock-step@step=3", ["clock-step", "for"]),
            ("kill:worker=7@step=3", ["no rank 7", "0 to 1"]),
            ("kill:worker=1@step=9", ["ends at step 5"]),
            ("kill", ["no moment"]),
            ("kill@step=3,for=2s", ["for=2s", "accepted"]),
            ("bit-flip@step=3", ["--checkpoint-dir"]),
        ]:
            with self.subTest(spec=spec):
                self.refused(2, ["--steps", "5", "--fault", spec], "--fault", *parts)

    def test_fault_plans(self):
        """plan files: missing, not TOML, an unknown key, an unknown kind"""
        for name, content, parts in [
            ("broken.toml", b"[[fault\n", [":1:", "rror"]),
            ("key.toml", b'[[fault]]\nkindd = "kill"\n',
             [":2:", "unknown key 'kindd'", "did you mean kind?"]),
            ("kind.toml", b'[[fault]]\nspec = "explode@step=3"\n', ["explode", "unknown kind"]),
        ]:
            with self.subTest(name=name):
                path = self.write(name, content)
                self.refused(2, ["--steps", "5", "--fault-plan", path], f"--fault-plan {path}", *parts)
        self.refused(2, ["--fault-plan", "given/none"],
                     "--fault-plan given/none: cannot be read", "No such file")

    # --- datasets ---

    def dataset(self, **changed):
        images = bytes(range(256)) * 25 * 2  # 64 images of 10 x 20
        good = {
            "train-images-idx3-ubyte.gz": idx(3, (64, 10, 20), images),
            "train-labels-idx1-ubyte.gz": idx(1, (64,), bytes(i % 10 for i in range(64))),
            "t10k-images-idx3-ubyte.gz": idx(3, (64, 10, 20), images),
            "t10k-labels-idx1-ubyte.gz": idx(1, (64,), bytes(i % 10 for i in range(64))),
        }
        for name, content in {**good, **changed}.items():
            if content is not None:
                packed = content if isinstance(content, tuple) else (gzip.compress(content, mtime=0),)
                self.write(name, packed[0])
            elif os.path.exists(os.path.join(self.work, "given", name)):
                os.unlink(os.path.join(self.work, "given", name))

    def test_datasets(self):
        """missing, truncated, wrong magic, labels that are out of range or do not fit: exit code 5"""
        labels, images = "train-labels-idx1-ubyte.gz", "train-images-idx3-ubyte.gz"
        pixels = bytes(64 * 200)
        packed = gzip.compress(idx(3, (64, 10, 20), bytes(range(256)) * 50), mtime=0)
        for name, content, parts in [
            (images, None, ["No such file"]),
            ("t10k-labels-idx1-ubyte.gz", None, ["No such file"]),
            (images, (packed[: len(packed) // 2],), ["truncated"]),
            (images, idx(3, (64, 10, 20), pixels[:-1]), ["truncated"]),
            (images, idx(3, (2000000000, 10, 20), pixels), []),
            (images, idx(3, (64, 10, 20), pixels, magic=0x0D03), ["magic", "accepted"]),
            (labels, idx(1, (64,), bytes(64), magic=0x0803), ["magic", "accepted"]),
            (labels, idx(1, (64,), bytes([*range(10), 10, *([1] * 53)])), ["label 10"]),
            (labels, idx(1, (63,), bytes(63)), ["63", "64"]),
            (labels, b"", []),
        ]:
            with self.subTest(name=name, parts=parts):
                self.dataset(**{name: content})
                self.refused(5, ["--data", "given", "--checkpoint-dir", "ck"], "--data given", name, *parts)
        self.refused(5, ["--data", "given/none", "--steps", "5"], "--data given/none", "No such file")

    # --- directories ---

    def test_unwritable_directories(self):
        """checkpoints or a summary that cannot be written are refused at the start, not at the end"""
        path = self.write("file", b"x")
        for where in (path, f"{path}/ck"):
            self.refused(2, ["--checkpoint-dir", where], f"--checkpoint-dir {where}", "Not a directory")
        for option, where, why in (("--summary", f"{path}/s.json", "Not a directory"),
                                   ("--summary", "given", "a directory"),
                                   ("--summary", "given/none/s.json", "No such file"),
                                   ("--events", "given/none/e", "No such file")):
            command = [harness.program, "--steps", "5", "--checkpoint-dir", "ck", option, where]
            result = Job(self, command=command).end()
            self.assert_one_line(result, 2, f"{option} {where}: cannot be written", why, "accepted")
            self.assertFalse(os.path.exists(os.path.join(self.work, "ck")))

    def test_read_only_directory(self):
        """a read-only file system"""
        self.kept_in_work = {"given", "read-only"}
        mounted = os.path.join(self.work, "read-only")
        os.mkdir(mounted)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "none", mounted],
                              capture_output=True, text=True, check=False)
        if made.returncode != 0:
            self.skipTest(f"cannot mount here: {made.stderr.strip()}")
        try:
            for where in ("read-only", "read-only/ck"):
                self.refused(2, ["--checkpoint-dir", where],
                             f"--checkpoint-dir {where}", "Read-only file system")
        finally:
            subprocess.run(["umount", mounted], check=True)

    # --- the door ---

    def test_port_in_use(self):
        """a port that is in use"""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            where = f"127.0.0.1:{taken.getsockname()[1]}"
            self.refused(2, ["--listen", where, "--checkpoint-dir", "ck"],
                         f"--listen {where}", "in use", "accepted")

    def test_wrong_token(self):
        """a wrong token, another program, no place: exit code 7; the job does not notice"""
        right, wrong = self.write("right", b"0123456789abcdef\n"), self.write("wrong", b"fedcba9876543210\n")
        short = self.write("short", b"abc\n")
        clean = self.clean_digest(1000)
        job = self.start("--steps", 1000, "--listen", "127.0.0.1:0", "--token-file", right)
        endpoint = job.event("job_started")["endpoint"]
        self.assertRegex(endpoint, r"^127\.0\.0\.1:\d+$")
        job.event("generation_started")
        for token, code, parts in [
            (wrong, 7, [f"--join {endpoint}", "refused", "token"]),
            (right, 7, ["no place is free", "--external"]),
            (short, 2, [f"--token-file {short}", "16 to"]),
        ]:
            result = Job(self, command=[harness.program, "--join", endpoint, "--token-file", token]).end()
            self.assert_one_line(result, code, *parts)
        result = Job(self, command=[harness.program, "--join", endpoint]).end()
        self.assert_one_line(result, 2, "--token-file")
        with socket.create_connection(tuple(endpoint.rsplit(":", 1))) as rubbish:  # and one with nonsense
            rubbish.sendall(b"GET / HTTP/1.0\r\n\r\n" * 1000)
        result = job.end()
        self.assert_finished(result, 1000, clean)
        self.assertEqual(result.failures, [])
        self.assertEqual(result.summary["generations"], 1)
        self.assert_nothing_left()

    def test_another_transport(self):
        """a worker from outside with another transport than the job's: exit code 2, in one line"""
        token = self.write("right", b"0123456789abcdef\n")
        job = self.start("--steps", 200, "--external", 1, "--listen", "127.0.0.1:0", "--token-file", token)
        endpoint = job.event("job_started")["endpoint"]
        joining = [harness.program, "--join", endpoint, "--token-file", token]
        result = Job(self, command=[*joining, "--transport", "shm"]).end()
        self.assert_one_line(result, 2, "--transport shm", "accepted: tcp")
        job.send(signal.SIGTERM)
        job.end()
        self.assert_nothing_left()

    def test_worker_role_by_hand(self):
        """the worker's role in the environment of a person's shell"""
        result = Job(self, command=[harness.program], environment={"TROUPE_ROLE": "worker"}).end()
        self.assert_one_line(result, 2, "TROUPE_ROLE", "unset")

    # --- checkpoints ---

    def checkpoints(self):
        self.kept_in_work = {"given", "ck"}
        result = self.run_job("--steps", 60, "--checkpoint-dir", "ck", "--checkpoint-every", 20)
        self.assert_finished(result, 60)

    def edit_manifests(self, change):
        """In every version, so that no older one can be fallen back to."""
        for name in os.listdir(os.path.join(self.work, "ck")):
            path = os.path.join(self.work, "ck", name, "manifest.json")
            with open(path, encoding="utf-8") as file:
                manifest = json.load(file)
            self.assertEqual(manifest_digest(manifest), manifest["manifest_digest"])
            change(manifest)
            manifest["manifest_digest"] = manifest_digest(manifest)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(manifest, file)

    def refused_checkpoint(self, code, options, *parts, usual=True):
        before = self.tree("ck")
        start = self.start if usual else lambda *o: Job(self, *o)
        self.assert_one_line(start("--checkpoint-dir", "ck", *options).end(), code, *parts)
        self.assertEqual(self.tree("ck"), before)
        self.assert_nothing_left()

    def test_checkpoints_of_other_settings(self):
        """checkpoints of another seed, batch, sharding or a longer job; the directory stays as it was"""
        self.checkpoints()
        batch, seed = ["--global-batch", "128"], ["--seed", "7"]
        longer = ["--steps", "100"]
        for options, parts in [
            ([*batch, *longer, "--seed", "8"], ["--seed 7", "8", "accepted"]),
            ([*seed, *longer, "--global-batch", "64"], ["--global-batch 128", "64", "accepted"]),
            ([*seed, *batch, *longer, "--shards", "4"], ["--shards 8", "4", "accepted"]),
            ([*seed, *batch, *longer, "--wire", "bfloat16"],
             ["--wire float32", "bfloat16", "accepted: the same --wire"]),
            ([*seed, *batch, "--steps", "30"], ["--steps 30", "step 60", "accepted"]),
        ]:
            with self.subTest(options=options):
                self.refused_checkpoint(2, options, *parts, usual=False)

    def test_resume_of_a_step_that_is_not_there(self):
        """--resume STEP where there is none: exit code 6, and the steps that are there"""
        self.checkpoints()
        self.refused_checkpoint(6, ["--steps", 100, "--resume", 30],
                                "--resume 30", "accepted: 20, 40, 60, auto, none")
        result = Job(self, *harness.USUAL, "--steps", 100, "--checkpoint-dir", "new", "--resume", 30).end()
        self.assert_one_line(result, 6, "--resume 30", "accepted: auto, none")
        self.assertFalse(os.path.exists(os.path.join(self.work, "new")))

    def test_resume_of_a_damaged_step(self):
        """--resume STEP where that one is damaged: exit code 6, no other is taken"""
        self.checkpoints()
        [name] = [n for n in os.listdir(os.path.join(self.work, "ck")) if n.endswith("40")]
        folder = os.path.join(self.work, "ck", name)
        [shard] = [n for n in os.listdir(folder) if n.startswith("parameters")]
        with open(os.path.join(folder, shard), "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        self.refused_checkpoint(6, ["--steps", 100, "--resume", 40],
                                "--resume 40", "digest", "accepted: 20, 60")

    def test_checkpoint_of_another_program(self):
        """a checkpoint of another program: exit code 2"""
        self.checkpoints()

        def change(manifest):
            manifest["program"] = "another"

        self.edit_manifests(change)
        self.refused_checkpoint(2, ["--steps", 100], "--checkpoint-dir ck", "another", "accepted")

    def test_checkpoint_of_a_newer_schema(self):
        """a checkpoint of a newer schema: exit code 2"""
        self.checkpoints()

        def change(manifest):
            manifest["schema"] = 99

        self.edit_manifests(change)
        self.refused_checkpoint(2, ["--steps", 100], "--checkpoint-dir ck", "schema 99", "accepted")


if __name__ == "__main__":
    harness.main()
