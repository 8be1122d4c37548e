#!/usr/bin/env python3
"""scripts/torch_runner.py, as far as it goes without torch: what of a job it takes, and what it sets before torch."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from torch_runner_lib import environment  # noqa: E402
from torch_runner_lib.section import Refused, Section  # noqa: E402

PLAN = os.environ.get("QLORA_PLAN", "qlora-plan")
JOB = """schema: 1
model: {name: llama-3.2-1b}
training: {seq_len: 512, mixed_precision: bf16}
cluster: {gpu: A100 SXM4 80GB, world_size: 16}
"""


def exported(plan):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "job.yaml")
        path.write_text(JOB, encoding="utf-8")
        done = subprocess.run([PLAN, "export", path, "--plan", plan, "--to", "runner"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class TorchRunner(unittest.TestCase):
    def variables(self, plan):
        with mock.patch.dict(os.environ, {"WORLD_SIZE": "8"}, clear=True):
            environment.prepare(Section("", exported(plan)))
            return dict(os.environ)

    def test_an_option_that_nobody_takes_is_refused(self):
        section = Section("training", {"known": 1, "new": 2})
        section.take("known")
        with self.assertRaisesRegex(Refused, "training.new is not understood"):
            section.finish()
        with self.assertRaisesRegex(Refused, "training.gone is missing"):
            section.take("gone")
        with self.assertRaisesRegex(Refused, "axis: 2 is not done here: why"):
            Section("", {"axis": 2}).only("axis", 1, why="why")

    def test_export_has_job_and_plan(self):
        job = exported("zero3")
        self.assertEqual(set(job), {"job", "plan", "deepspeed"})
        self.assertEqual(job["plan"]["loading"], "rank0")
        self.assertEqual(job["deepspeed"]["zero_optimization"]["stage"], 3)
        self.assertEqual(exported("ddp")["plan"]["loading"], "gpu")

    def test_launchers_variables_follow_the_plan(self):
        self.assertNotIn("ACCELERATE_USE_FSDP", self.variables("ddp"))
        self.assertEqual(self.variables("zero2")["ACCELERATE_USE_DEEPSPEED"], "true")
        fsdp1 = self.variables("fsdp1-hybrid-shard")
        self.assertEqual((fsdp1["FSDP_VERSION"], fsdp1["FSDP_SHARDING_STRATEGY"]), ("1", "HYBRID_SHARD"))
        self.assertEqual(fsdp1["FSDP_CPU_RAM_EFFICIENT_LOADING"], "true")
        fsdp2 = self.variables("fsdp2-no-reshard")
        self.assertEqual((fsdp2["FSDP_VERSION"], fsdp2["FSDP_RESHARD_AFTER_FORWARD"]), ("2", "false"))
        self.assertEqual(self.variables("fsdp2-hsdp")["ACCELERATE_USE_PARALLELISM_CONFIG"], "true")

    def test_bad_input_is_said_without_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "job.json")
            path.write_text("[]", encoding="utf-8")
            done = subprocess.run([sys.executable, "scripts/torch_runner.py", path, "--checkpoint", folder], cwd=ROOT,
                                  capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("expected a map", done.stderr)


if __name__ == "__main__":
    unittest.main()
