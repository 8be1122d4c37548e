#!/usr/bin/env python3
"""`qlora-plan trace` from outside, on programs that stand in for training ones: no torch, no GPU.

The environment's QLORA_PLAN names the binary. The stand-ins write the records that the probe would write.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLAN = os.environ.get("QLORA_PLAN", "qlora-plan")
RECORD = (ROOT / "test/data/trace/linear.jsonl").read_text(encoding="utf-8")
OOM = '{"event": "exception", "type": "OutOfMemoryError", "message": "CUDA out of memory. Tried to allocate 2 GiB", "out_of_memory": true}\n'

# Writes a record where the probe would.
WRITE = """
import json, os, sys
request = json.load(open(os.environ["QLORA_PLAN_TRACE"]))
def record(text, name="1"):
    open(os.path.join(request["directory"], name + ".jsonl"), "w").write(text)
"""


def trace(options, program, script="", **environment):
    """Runs `trace` on a Python script, or on a command line."""
    with tempfile.TemporaryDirectory() as folder:
        if script:
            path = Path(folder, "train.py")
            path.write_text(script, encoding="utf-8")
            program = [sys.executable, str(path), *program]
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"TMPDIR": folder} | environment
        result = subprocess.run([PLAN, "trace", *options, "--", *program], cwd=ROOT, env=env, capture_output=True, text=True)
        left = [name for name in os.listdir(folder) if name.startswith("qlora-plan")]
        assert not left, left
        return result


def records(*texts, status=0):
    lines = [WRITE, *(f"record({text!r}, {str(i)!r})" for i, text in enumerate(texts)), f"sys.exit({status})"]
    return "\n".join(lines)


class Trace(unittest.TestCase):
    maxDiff = None

    def test_a_run_that_fits(self):
        result = trace([], [], records(RECORD))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("on 1 null A100 SXM4 80GB", result.stderr)
        self.assertIn("on a null A100 SXM4 80GB, 79.25 GiB; torch 2.8.0+cu128", result.stdout)
        self.assertIn("\nfits\n", result.stdout)
        self.assertIn("train.py:7 (<module>): item float = 0.02, 2 times", result.stdout)

    def test_the_json_is_alone_on_stdout_and_as_the_schema_says(self):
        result = trace(["--json", "--gpu", "H200"], [], "print('hello')\n" + records(RECORD))
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertIn("hello", result.stderr)
        self.assertEqual(report["verdict"], "fits")
        self.assertEqual(report["trace"]["gpu"]["name"], "H200 SXM 141GB")
        self.assertEqual(report["trace"]["ranks"][0]["training_peak"]["allocated_bytes"], 18368000)
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not installed; test/report validates the same schema")
        schema = json.loads(subprocess.run([PLAN, "schema"], capture_output=True, text=True, check=True).stdout)
        jsonschema.Draft202012Validator(schema).validate(report)

    def test_out_of_memory_is_an_answer(self):
        result = trace(["--json"], [], records(RECORD.replace('"event": "end"', '"event": "none"') + OOM, status=1))
        self.assertEqual(result.returncode, 1, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual((report["verdict"], report["trace"]["outcome"]), ("does_not_fit", "out_of_memory"))
        self.assertTrue(report["trace"]["message"].startswith("CUDA out of memory."))

    def test_a_crash_shows_status_and_last_lines(self):
        result = trace([], ["sh", "-c", "echo a last word >&2; kill -SEGV $$"])
        self.assertEqual(result.returncode, 3)
        self.assertIn("signal 11", result.stderr)
        self.assertIn("its last lines:\na last word", result.stderr)
        failed = trace([], ["sh", "-c", "exit 7"])
        self.assertEqual(failed.returncode, 3)
        self.assertIn("exit status 7", failed.stderr)

    def test_a_program_that_is_not_there(self):
        result = trace([], ["no-such-program-here"])
        self.assertEqual(result.returncode, 3)
        self.assertIn("no-such-program-here: No such file or directory", result.stderr)

    def test_a_hang_is_ended(self):
        result = trace(["--timeout", "1"], [], "import time\nprint('at work', flush=True)\ntime.sleep(60)")
        self.assertEqual(result.returncode, 3)
        self.assertIn("--timeout", result.stderr)
        self.assertIn("at work", result.stderr)

    def test_a_program_without_torch_or_with_a_wrong_one(self):
        self.assertIn("imported torch", trace([], [], "print(1)").stderr)
        self.assertIn("no torch in the Python", trace([], [], "import torch").stderr)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "torch").mkdir()
            for line, word in (("cuda, hip = None, None", "the CPU"), ("cuda, hip = None, '6.3'", "ROCm")):
                Path(folder, "torch/version.py").write_text(line, encoding="utf-8")
                Path(folder, "torch/__init__.py").write_text("from . import version\n__version__ = '2.8.0'", encoding="utf-8")
                result = trace([], [], "import torch", PYTHONPATH=folder)
                self.assertEqual(result.returncode, 3)
                self.assertIn(f"torch 2.8.0 is built for {word}", result.stderr)

    def test_the_program_gets_its_words_and_its_environment(self):
        script = WRITE + f"""
print(sys.argv[1:], os.environ["NULLGPU_DEVICES"], os.environ["NULLGPU_NAME"], os.environ.get("RANK"), request["steps"],
      request["answers"], os.environ["WORLD_SIZE"], os.environ["LOCAL_RANK"])
record({RECORD!r})
"""
        words = ["--lr", "1e-4", "--json", "-q", "--", "x y"]
        options = ["--world-size", "16", "--rank", "9", "--steps", "2", "--answer", "bool=false", "--answer", "a.py:3=0.5"]
        result = trace(options, words, script)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("['--lr', '1e-4', '--json', '-q', '--', 'x y'] 8 NVIDIA A100-SXM4-80GB 9 2 "
                      "{'a.py:3': 0.5, 'bool': False} 16 1", result.stderr)

    def test_the_environments_own_sitecustomize_runs_too(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "sitecustomize.py").write_text("import builtins\nbuiltins.mine = 41", encoding="utf-8")
            result = trace([], [], "print(mine + 1)", PYTHONPATH=folder)
        self.assertIn("42\n", result.stderr)

    def test_usage_errors(self):
        def refused(*args):
            result = subprocess.run([PLAN, "trace", *args], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
            return result.stderr

        self.assertIn("no program to trace", refused())
        self.assertIn("no program to trace", refused("--steps", "2", "--"))
        self.assertIn("less than --world-size", refused("--world-size", "4", "--rank", "4", "--", "true"))
        self.assertIn("did you mean A100 SXM4 80GB?", refused("--gpu", "A100 SMX4 80GB", "--", "true"))
        self.assertIn("may be H100", refused("--gpu", "H100", "--", "true"))
        self.assertIn("not WHAT=VALUE", refused("--answer", "bool", "--", "true"))
        self.assertIn("did you mean --steps?", refused("--step", "4", "--", "true"))


if __name__ == "__main__":
    unittest.main()
