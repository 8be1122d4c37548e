#!/usr/bin/env python3
"""Environments: what is refused, and why; nothing is installed here."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLAN = os.environ.get("QLORA_PLAN", "qlora-plan")
FAKE_PYTHON = "#!/bin/sh\necho \"$FAKE_PIP\"; exit 1\n"


class Env(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name, "envs")

    def run_env(self, *args, **more):
        environment = os.environ | {"QLORA_PLAN_ENVS": str(self.root)} | more
        return subprocess.run([PLAN, "env", *map(str, args)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    def make(self, name, versions):
        """What an environment leaves behind once it is whole."""
        python = self.root / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
        manifest = {"name": name, "python": str(python), "requirements": ["x"], "versions": versions}
        (self.root / name / "qlora-plan-env.json").write_text(json.dumps(manifest), encoding="utf-8")
        return str(python)

    def test_list_has_what_is_made_and_what_could_be(self):
        listed = self.run_env("list")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("2025-10", listed.stdout)
        python = self.make("2025-10", {"torch": "2.8.0"})
        self.assertIn(python, self.run_env("list").stdout)
        (row,) = json.loads(self.run_env("list", "--json").stdout)
        self.assertEqual(row["python"], python)

    def test_unknown_stacks_are_refused(self):
        unknown = self.run_env("create", "2019-01")
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))
        self.assertIn("2025-10", unknown.stderr)
        self.assertEqual(self.run_env("create").returncode, 2)

    def test_folders_of_others_are_left_alone(self):
        other = self.root / "other"
        other.mkdir(parents=True)
        (other / "thesis.tex").touch()
        refused = self.run_env("create", "2025-10", other)
        self.assertEqual((refused.returncode, refused.stdout), (3, ""))
        self.assertIn("not an environment of ours", refused.stderr)
        self.assertEqual([p.name for p in other.iterdir()], ["thesis.tex"])

    def test_an_interpreter_that_says_nothing_is_named(self):
        refused = self.run_env("list", "--python", "/bin/false")
        self.assertEqual((refused.returncode, refused.stdout), (3, ""))
        self.assertIn("/bin/false ended with exit status 1", refused.stderr)

    def test_failures_of_pip_are_said_in_words(self):
        for output, words in {
            "OSError: [Errno 28] No space left on device": "the disk is full",
            "Temporary failure in name resolution": "cannot be reached",
            "ERROR: No matching distribution found for torch==2.4.1": "has no torch==2.4.1 for Python",
            "something else": "last lines are above",
        }.items():
            folder = self.root / "begun"
            (folder / "bin").mkdir(parents=True, exist_ok=True)
            (folder / "qlora-plan-env.begun").touch()
            (folder / "bin" / "python").write_text(FAKE_PYTHON, encoding="utf-8")
            (folder / "bin" / "python").chmod(0o755)
            failed = self.run_env("create", "2025-10", folder, FAKE_PIP=output)
            self.assertEqual((failed.returncode, failed.stdout), (3, ""), failed.stderr)
            self.assertIn(words, failed.stderr) if "GiB left" not in failed.stderr else self.skipTest("no room on this disk")
            self.assertIn(output, failed.stderr)

    def test_versions_of_a_job_are_pinned(self):
        folder = self.root / "begun"
        (folder / "bin").mkdir(parents=True)
        (folder / "qlora-plan-env.begun").touch()
        (folder / "bin" / "python").write_text("#!/bin/sh\necho \"$@\"; exit 1\n", encoding="utf-8")
        (folder / "bin" / "python").chmod(0o755)
        failed = self.run_env("create", "configs/llama-3.1-405b-qlora-64.yaml", folder)
        self.assertEqual(failed.returncode, 3)
        if "GiB left" in failed.stderr:
            self.skipTest("no room on this disk")
        self.assertIn("transformers==4.57.1", failed.stderr)


if __name__ == "__main__":
    unittest.main()
