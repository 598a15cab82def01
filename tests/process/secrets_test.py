"""The job's secrets are nowhere: not in an argument, an environment, an output, an event or a checkpoint."""

import glob
import hashlib
import hmac
import json
import os
import struct

import harness
from harness import MARK, ProcessTest

TOKEN = b"a-token-for-this-test-0123456789abcdef"


def path_secret(token, job):
    """As exchange.cpp derives it: HKDF-SHA256, the job's id as salt."""
    salt = struct.pack("<QQ", int(job[:16], 16), int(job[16:], 16))
    extracted = hmac.new(salt, token, hashlib.sha256).digest()
    return hmac.new(extracted, b"troupe path secret\x01", hashlib.sha256).digest()


class Secrets(ProcessTest):
    kept_in_work = {"ck", "token"}

    def outside_view(self):
        """What anybody of this machine sees of the processes: name -> bytes."""
        seen = {}
        for pid in self.processes():
            for name in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{pid}/{name}", "rb") as file:
                        seen[f"{pid}/{name}"] = file.read()
                except OSError:
                    continue  # it has ended
        return seen

    def written(self):
        """What the job has written: path -> bytes. The token's own file is left out."""
        found = {}
        for folder in (self.work, self.tmp, self.out):
            for path in glob.glob(f"{folder}/**", recursive=True):
                if os.path.isfile(path) and os.path.basename(path) != "token":
                    with open(path, "rb") as file:
                        found[path] = file.read()
        return found

    def test_secrets_are_nowhere(self):
        """a job with its own token: processes looked at while it runs, everything written afterwards"""
        with open(os.path.join(self.work, "token"), "wb") as file:
            file.write(TOKEN + b"\n")
        job = self.start("--steps", 1000000, "--workers", 2, "--checkpoint-dir", "ck",
                         "--token-file", "token")
        job.event("checkpoint_written")
        seen = self.outside_view()
        self.assertGreaterEqual(len([n for n in seen if n.endswith("cmdline")]), 3, "director and workers")
        self.assertTrue(any(MARK.encode() in text for text in seen.values()), "environments can be read")
        job.send(harness.signal.SIGTERM)
        job.end()
        written = self.written()
        manifests = [json.loads(text) for path, text in written.items() if path.endswith("manifest.json")]
        self.assertTrue(manifests, "a checkpoint names its job")
        secrets = [TOKEN, TOKEN.hex().encode()]
        for manifest in manifests:
            secret = path_secret(TOKEN, manifest["job"])
            secrets += [secret, secret.hex().encode(), secret[:16]]
        for name, text in {**seen, **written}.items():
            for secret in secrets:
                self.assertNotIn(secret, text, name)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
