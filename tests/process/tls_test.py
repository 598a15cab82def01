"""Joining inside TLS: the same bits as without, and every mistake is one line."""

import os
import subprocess

import harness
from harness import Job, ProcessTest

STEPS = 40


class Tls(ProcessTest):
    kept_in_work = {"pki"}

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.work, "pki"))
        with open(os.path.join(self.work, "pki/token"), "wb") as file:
            file.write(b"0123456789abcdef\n")
        self.authority("ours")
        self.certificate("director", "IP:127.0.0.1")

    # --- as docs/guide/operating.md makes them ---

    def openssl(self, *words):
        made = subprocess.run(["openssl", *words], cwd=os.path.join(self.work, "pki"), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)

    def authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
                     "-days", "365", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")

    def certificate(self, name, alternatives, authority="ours"):
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
                     "-subj", f"/CN={name}", "-addext", f"subjectAltName={alternatives}",
                     "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem",
                     "-CAkey", f"{authority}.key", "-CAcreateserial", "-copy_extensions", "copy",
                     "-days", "90", "-out", f"{name}.pem")

    @staticmethod
    def shows(name):
        return ["--tls-cert", f"pki/{name}.pem", "--tls-key", f"pki/{name}.key"]

    def join(self, endpoint, *options):
        return Job(self, command=[harness.program, "--join", endpoint, "--token-file", "pki/token", *options])

    # --- what works ---

    def test_same_bits(self):
        """two workers and the replacement of one, all inside TLS: the digest of a job without it"""
        clean = self.clean_digest(STEPS)
        result = self.run_job("--steps", STEPS, "--workers", 2, *self.shows("director"),
                              "--fault", "kill:worker=1@step=20")
        self.assert_finished(result, STEPS, clean)
        self.assert_failures(result, [("kill", 1, "peer", 1)])

    def test_joiner_with_a_certificate(self):
        """both show certificates: a worker from outside, and one that the director has started"""
        clean = self.clean_digest(STEPS)
        self.certificate("node", "DNS:node-1")
        self.authority("theirs")
        self.certificate("foreign", "DNS:node-1", authority="theirs")
        job = self.start("--steps", STEPS, "--workers", 2, "--external", 1, "--token-file", "pki/token",
                         *self.shows("director"), "--tls-ca", "pki/ours.pem")
        endpoint = job.event("job_started")["endpoint"]
        ours = ["--tls-ca", "pki/ours.pem"]
        for options, parts in [
            ([], ["TLS only", "--tls-ca FILE"]),
            (["--tls-ca", "pki/theirs.pem"], ["no authority", "--tls-ca pki/theirs.pem"]),
            (ours, ["demands a certificate", "--tls-cert FILE"]),
            ([*ours, *self.shows("foreign")], ["--tls-cert pki/foreign.pem", "accepted"]),
        ]:
            self.assert_one_line(self.join(endpoint, *options).end(), 7, f"--join {endpoint}", *parts)
        joined = self.join(endpoint, *ours, *self.shows("node")).end()
        self.assertEqual(joined.code, 0, joined.err)
        result = job.end()
        self.assert_finished(result, STEPS, clean)
        self.assertEqual(result.failures, [])
        self.assert_nothing_left()

    # --- what does not ---

    def test_director_without_tls(self):
        """a joiner that wants TLS goes no further with a director that has none: exit code 7"""
        job = self.start("--steps", 1000000, "--external", 1, "--token-file", "pki/token")
        endpoint = job.event("job_started")["endpoint"]
        result = self.join(endpoint, "--tls-ca", "pki/ours.pem").end()
        self.assert_one_line(result, 7, f"--join {endpoint}", "no TLS is spoken there")
        job.send(harness.signal.SIGTERM)
        job.end()
        self.assert_nothing_left()

    def test_files(self):
        """files that cannot be used, half of a pair: one line, exit code 2, nothing started"""
        self.certificate("other", "IP:127.0.0.1")
        for name, mode in [("open.key", 0o644), ("group.key", 0o660)]:
            path = os.path.join(self.work, "pki", name)
            with open(os.path.join(self.work, "pki/director.key"), "rb") as key, open(path, "wb") as file:
                file.write(key.read())
            os.chmod(path, mode)
        cert = ["--tls-cert", "pki/director.pem"]
        for options, parts in [
            (cert, ["--tls-cert pki/director.pem", "with --tls-key FILE"]),
            (["--tls-ca", "pki/ours.pem"], ["--tls-ca pki/ours.pem", "with --tls-cert FILE"]),
            ([*cert, "--tls-key", "pki/none"], ["--tls-key pki/none", "No such file"]),
            ([*cert, "--tls-key", "pki/other.key"], ["--tls-key pki/other.key", "not the key of"]),
            ([*cert, "--tls-key", "pki/open.key"], ["mode 0644", "chmod 600 pki/open.key"]),
            ([*cert, "--tls-key", "pki/group.key"], ["mode 0660", "chmod 600"]),
            (["--tls-cert", "pki/token", "--tls-key", "pki/director.key"],
             ["--tls-cert pki/token", "no certificate in it"]),
        ]:
            with self.subTest(options=options):
                result = self.start("--steps", STEPS, *options).end()
                self.assert_one_line(result, 2, *parts)
                self.assertEqual(result.named("worker_started"), [])
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
