"""Tests of scripts/bench, with small shell scripts in the place of qlora-plan."""
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts", "bench")
ANSWER = '{"plans": [{"name": "ddp", "applicable": true, "training_peak": {"allocated_bytes": 4096}}, {"name": "single", "reason": "one rank"}]}'


class Bench(unittest.TestCase):
    def bench(self, estimate):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "qlora-plan")
            with open(program, "w") as f:
                f.write(f"#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n{estimate}\n")
            os.chmod(program, 0o755)
            return subprocess.run([sys.executable, BENCH, "--binary", program, "--job", "job.yaml", "-n", "2"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_prints_what_was_measured_beside_the_limits(self):
        done = self.bench(f"echo '{ANSWER}'")
        self.assertIn("estimate, 2 plans", done.stdout)
        self.assertIn("4,096 B allocated", done.stdout)
        self.assertIn("one rank", done.stdout)

    def test_a_missed_limit_is_exit_code_1(self):
        done = self.bench(f"sleep 0.2\necho '{ANSWER}'")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"estimate, 2 plans .*MISSED")

    def test_a_program_that_fails_is_named(self):
        done = self.bench(f"echo '{ANSWER}'; exit 4")
        self.assertIn("exit code [4]", done.stderr)


if __name__ == "__main__":
    unittest.main()
