#!/usr/bin/env python3
"""What an installation holds: the program runs from there and finds what it needs there, wherever it was put.

The environment's QLORA_PLAN names the binary, in the folder bin of its build.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["QLORA_PLAN"]).resolve().parents[1]


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qlora-plan-install-")
        self.addCleanup(folder.cleanup)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", folder.name], check=True, capture_output=True)
        # Moved afterwards: nothing may hang on the prefix.
        self.prefix = Path(folder.name) / "elsewhere"
        self.prefix.mkdir()
        for part in ("bin", "lib"):
            (Path(folder.name) / part).rename(self.prefix / part)

    def run_installed(self, *args):
        return subprocess.run([self.prefix / "bin/qlora-plan", *args], cwd="/", capture_output=True, text=True, check=False)

    def test_estimates(self):
        done = self.run_installed("estimate", str(ROOT / "configs/tiny-qlora.yaml"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("recommended", done.stdout)

    def test_traces(self):
        # The null GPU and the probe are found: what is wrong is that the program has no torch.
        done = self.run_installed("trace", "--", sys.executable, "-c", "pass")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no Python process of it imported torch", done.stderr)

    def test_brings_the_training_program_of_verify(self):
        home = self.prefix / "lib/qlora-plan"
        shown = subprocess.run([sys.executable, home / "torch_runner.py", "--help"], capture_output=True, text=True, check=False)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertTrue((home / "probe/qlora_plan_probe/__init__.py").is_file())


if __name__ == "__main__":
    unittest.main()
