#!/usr/bin/env python3
"""sparse-weights from outside: files without data, all or nothing, and nobody else's files."""

import json
import os
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

PLAN = os.environ.get("QLORA_PLAN", "qlora-plan")


def run(*args):
    return subprocess.run([PLAN, "sparse-weights", *map(str, args)], capture_output=True, text=True, check=False)


def header(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length)), 8 + length


class SparseWeights(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.target = Path(self.folder.name, "weights")

    def write(self, *args):
        result = run(*args, "--json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def refused(self, status, *args):
        result = run(*args)
        self.assertEqual((result.returncode, result.stdout), (status, ""), result.stderr)
        self.assertEqual([p.name for p in Path(self.folder.name).iterdir() if p.name.startswith("weights.")], [])
        return result.stderr

    def test_largest_model_takes_no_room(self):
        summary = self.write("llama-3.1-405b", self.target)
        self.assertEqual(summary["parameters"], 405_853_388_800)
        self.assertEqual(summary["total_size_bytes"], 2 * 405_853_388_800)
        self.assertLess(summary["disk_bytes"], 16 << 20)
        index = json.loads((self.target / "model.safetensors.index.json").read_text(encoding="utf-8"))
        self.assertEqual(index["metadata"]["total_size"], summary["total_size_bytes"])
        named = set()
        for file in sorted(set(index["weight_map"].values())):
            tensors, start = header(self.target / file)
            tensors.pop("__metadata__")
            named |= tensors.keys()
            status = os.stat(self.target / file)
            self.assertEqual(status.st_size, start + max(t["data_offsets"][1] for t in tensors.values()))
            self.assertLess(status.st_blocks * 512, 1 << 20)
        self.assertEqual(named, index["weight_map"].keys())
        self.assertEqual(len(named), summary["tensors"])

    def test_quantized_weights_hold_what_a_loader_reads(self):
        self.write("llama-3.2-1b", self.target, "--layers", 1, "--format", "bnb-4bit")
        (file,) = self.target.glob("*.safetensors")
        tensors, start = header(file)
        state = tensors["model.layers.0.mlp.up_proj.weight.quant_state.bitsandbytes__nf4"]["data_offsets"]
        with open(file, "rb") as stream:
            stream.seek(start + state[0])
            self.assertEqual(json.loads(stream.read(state[1] - state[0]))["shape"], [8192, 2048])
        config = json.loads((self.target / "config.json").read_text(encoding="utf-8"))
        self.assertEqual(config["quantization_config"]["bnb_4bit_quant_type"], "nf4")

    def test_folders_above_the_target_are_made(self):
        self.write("llama-3.2-1b", self.target / "of" / "llama", "--layers", 1)
        self.assertTrue((self.target / "of" / "llama" / "config.json").is_file())

    def test_tokenizer_of_the_source_is_kept(self):
        source = Path(self.folder.name, "source")
        source.mkdir()
        self.write("llama-3.2-1b", self.target, "--layers", 1)
        (source / "config.json").write_text((self.target / "config.json").read_text(encoding="utf-8"), encoding="utf-8")
        (source / "tokenizer.json").write_text("{}", encoding="utf-8")
        summary = self.write(source, self.target)
        self.assertEqual(summary["tokenizer"], "copied")
        self.assertEqual((self.target / "tokenizer.json").read_text(encoding="utf-8"), "{}")

    def test_only_its_own_files_are_replaced(self):
        self.write("llama-3.2-1b", self.target, "--layers", 2)
        self.write("llama-3.2-1b", self.target, "--layers", 1)
        self.assertEqual(len(list(self.target.parent.iterdir())), 1)
        (self.target / "adapter.bin").touch()
        self.assertIn("adapter.bin", self.refused(2, "llama-3.2-1b", self.target))
        self.assertIn("no folder", self.refused(2, "llama-3.2-1b", self.target / "adapter.bin"))

    def test_an_interruption_leaves_nothing(self):
        python = Path(self.folder.name, "python")
        python.write_text("#!/bin/sh\nsleep 0.5\n", encoding="utf-8")
        python.chmod(0o755)
        command = [PLAN, "sparse-weights", "llama-3.2-1b", self.target, f"--from-python={python}"]
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while not list(Path(self.folder.name).glob("weights.*/config.json")):
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(number)
            self.assertEqual((process.communicate(), process.returncode), ((b"", b""), 130))
            self.assertEqual([p.name for p in Path(self.folder.name).iterdir()], ["python"])

    def test_what_cannot_be_done_leaves_nothing(self):
        unknown = Path(self.folder.name, "gpt2.json")
        unknown.write_text('{"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2}', encoding="utf-8")
        self.assertIn("--from-python", self.refused(2, unknown, self.target))
        self.assertIn("cannot run", self.refused(2, unknown, self.target, "--from-python=no-such-python"))
        self.assertIn("did you mean", self.refused(2, "lama-3.1-8b", self.target))
        self.assertIn("--group-size", self.refused(2, "llama-3.2-1b", self.target, "--group-size", 64))
        self.assertIn("experts", self.refused(2, "mixtral-8x7b", self.target, "--format", "awq"))
        self.assertIn("gpt-oss alone", self.refused(2, "qwen3-30b-a3b", self.target, "--format", "mxfp4"))
        self.assertIn("--layers: error: cannot cut 16 layers to 99: expected at most 16",
                      self.refused(2, "llama-3.2-1b", self.target, "--layers", 99))
        file = Path(self.folder.name, "file")
        file.write_text("", encoding="utf-8")
        self.refused(3, "llama-3.2-1b", file / "weights")
        self.assertFalse(self.target.exists())


if __name__ == "__main__":
    unittest.main()
