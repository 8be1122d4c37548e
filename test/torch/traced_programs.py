#!/usr/bin/env python3
"""traced_programs.py PYTHON [-k WORD]: programs of different kinds through `qlora-plan trace`, with the torch of PYTHON.

Not among the tests of every change: it needs an environment with a CUDA build of torch (scripts/test --with-torch PYTHON
runs it). The environment's QLORA_PLAN names the binary. A program whose libraries the environment lacks is named, and
is no success.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLAN = os.environ.get("QLORA_PLAN", "qlora-plan")
PYTHON = os.path.abspath(sys.argv.pop(1))
PORT = object()  # in a launcher's words: one that is free when it starts


def has(*modules):
    look = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))"
    return subprocess.run([PYTHON, "-c", look, *modules], check=False).returncode == 0


def needs(*modules):
    return unittest.skipUnless(has("torch", *modules), f"{PYTHON} has not all of {', '.join(modules)}")


def is_at_least(package, *wanted):
    look = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    found = subprocess.run([PYTHON, "-c", look, package], check=True, capture_output=True, text=True).stdout
    return tuple(int(part) for part in found.split(".")[: len(wanted)]) >= wanted


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def trace(options, program, *words, launcher=()):
    launch = [PYTHON, *(free_port() if word is PORT else word for word in launcher)]
    command = [PLAN, "trace", "--json", *options, "--", *launch, str(HERE / "programs" / program), *words]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PATH": f"{os.path.dirname(PYTHON)}:{os.environ['PATH']}"}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


class TracedPrograms(unittest.TestCase):
    maxDiff = None

    def ran(self, options, program, *words, launcher=(), status=0):
        result = trace(options, program, *words, launcher=launcher)
        self.assertEqual(result.returncode, status, result.stderr[-4000:])
        report = json.loads(result.stdout)["trace"]
        self.assertEqual(report["outcome"], "ran" if status == 0 else "out_of_memory")
        self.stderr = result.stderr
        return report

    def phases(self, report):
        return [phase["name"] for phase in report["ranks"][0]["phases"]]

    def test_a_plain_loop_sees_its_own_counters(self):
        report = self.ran([], "plain.py")
        peak = int(self.stderr.split("\npeak ")[-1].split()[0])
        self.assertEqual(report["ranks"][0]["peak"]["allocated_bytes"], peak)
        self.assertEqual(self.phases(report)[:6],
                         ["load", "prepare", "micro1.forward", "micro1.backward", "step1.optimizer", "step1.zero_grad"])

    def test_a_backward_pass_on_the_host_is_no_part_of_training(self):
        phases = self.phases(self.ran([], "tried.py"))
        self.assertEqual(phases[:3], ["load", "prepare", "micro1.forward"])
        self.assertEqual(len([name for name in phases if name.endswith(".backward")]), 2)

    def test_steps_end_the_program(self):
        report = self.ran(["--steps", "1"], "plain.py")
        self.assertIn("step1.optimizer", self.phases(report))
        self.assertNotIn("step2.optimizer", self.phases(report))

    def test_the_inventory_adds_up_to_the_peak(self):
        peak = self.ran(["--inventory"], "plain.py")["ranks"][0]["peak"]
        self.assertEqual(sum(peak["categories"].values()), peak["allocated_bytes"])
        self.assertGreater(peak["categories"]["optimizer_state"], 0)
        self.assertGreater(peak["categories"]["workspace"], 0)

    def same_real_and_played(self, program, *words, launcher, play=()):
        """Two real processes under the launcher, and either rank played alone, under `play`: the same to the byte."""
        runs = [([], launcher)] + [(["--world-size", "2", "--rank", str(rank)], play) for rank in (0, 1)]
        with ThreadPoolExecutor(2) as pool:
            both, *alone = pool.map(lambda run: self.ran(run[0], program, *words, launcher=run[1])["ranks"], runs)
        real = {rank["rank"]: rank for rank in both}
        self.assertEqual(sorted(real), [0, 1])
        for rank, (played,) in enumerate(alone):
            self.assertEqual(played["rank"], rank)
            for figure in ("requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes"):
                self.assertEqual(played["training_peak"][figure], real[rank]["training_peak"][figure],
                                 (program, words, launcher, rank, figure))

    def torchrun(self, program, *words):
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", PORT]
        self.same_real_and_played(program, *words, launcher=launcher)

    def test_ddp(self):
        self.torchrun("sharded.py", "ddp")

    def test_fsdp1(self):
        self.torchrun("sharded.py", "fsdp1")

    def test_fsdp2(self):
        self.torchrun("sharded.py", "fsdp2")

    @needs("deepspeed")
    def test_zero1_zero2_and_zero3(self):
        for stage in "123":
            self.torchrun("zero.py", stage)

    @needs("deepspeed")
    def test_deepspeeds_launcher(self):
        launcher = ["-m", "deepspeed.launcher.runner", "--num_gpus", "2", "--master_port", PORT]
        self.same_real_and_played("zero.py", "3", launcher=launcher)
        report = self.ran(["--world-size", "16", "--rank", "13"], "zero.py", "2", launcher=launcher)
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [13])

    @needs("accelerate")
    def test_accelerates_launcher(self):
        fsdp = ["--use_fsdp", "--fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP",
                "--fsdp_transformer_layer_cls_to_wrap", "Block"]
        knows_fsdp2 = is_at_least("accelerate", 1, 6)
        fsdps = [[*fsdp, "--fsdp_version", version] for version in "12"] if knows_fsdp2 else [fsdp]
        for plan in (["--multi_gpu"], *fsdps):
            launcher = ["-m", "accelerate.commands.launch", "--num_processes", "2", "--num_machines", "1",
                        "--mixed_precision", "bf16", "--main_process_port", PORT, *plan]
            self.same_real_and_played("accelerated.py", launcher=launcher, play=launcher)

    def test_a_played_rank_that_leaves_with_a_status_has_failed(self):
        result = trace(["--world-size", "2", "--rank", "1"], "refusing.py")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("exit status 1", json.loads(result.stdout)["trace"]["message"])

    def test_a_launcher_starts_the_played_rank_alone(self):
        options = ["--world-size", "64", "--rank", "63"]
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "8"]
        report = self.ran(options, "sharded.py", "fsdp2", launcher=launcher)
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [63])
        report = self.ran(["--world-size", "2", "--rank", "1"], "sharded.py", "ddp", "--spawn")
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [1])

    def test_objects_reach_other_ranks(self):
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", PORT]
        self.ran([], "objects.py", launcher=launcher)

    def test_ddp_meets_other_ranks_in_memory_that_was_in_use(self):
        self.ran(["--world-size", "24", "--rank", "0"], "verified.py")

    def test_groups_of_a_mesh_have_their_own_size(self):
        for words in ([], ["unasked"]):
            self.ran(["--world-size", "4", "--rank", "2", "--timeout", "120"], "meshed.py", *words)

    def test_factorizations_succeed(self):
        self.ran([], "factored.py")

    def test_checkpoints_of_shards(self):
        self.torchrun("resumed.py")

    def test_deterministic_algorithms(self):
        self.ran([], "deterministic.py")

    def test_a_crash_names_the_line_of_the_program(self):
        result = trace([], "crashing.py")
        self.assertEqual(result.returncode, 3, result.stderr)
        message = json.loads(result.stdout)["trace"]["message"]
        self.assertIn("signal 11", message)
        self.assertIn('crashing.py", line 8 in work', result.stderr.split("its last lines:")[-1])

    def test_weights_that_are_drawn_again_until_they_are_right(self):
        self.ran(["--world-size", "4", "--rank", "2", "--timeout", "600"], "drawn.py")

    def test_a_loop_that_waits_for_a_computed_value_ends(self):
        answers = self.ran(["--timeout", "600"], "waits.py")["answers"]
        self.assertTrue(any("loop" in answer["operation"] for answer in answers), answers)

    def test_many_layers_that_ask_the_same_are_no_loop_that_waits(self):
        self.ran([], "layered.py")

    def test_a_thread_of_the_program_that_outlives_it(self):
        self.ran([], "leaves.py")

    def test_expandable_segments_grow_in_a_cuda_graph(self):
        with unittest.mock.patch.dict(os.environ, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"):
            self.ran([], "graphed.py")

    def test_a_cuda_graph(self):
        report = self.ran([], "graphed.py")
        peak = int(self.stderr.split("\npeak ")[-1].split()[0])
        self.assertEqual(report["ranks"][0]["peak"]["allocated_bytes"], peak)

    def test_steps_that_replay_a_cuda_graph(self):
        report = self.ran(["--steps", "4"], "replayed.py")
        names = self.phases(report)
        self.assertEqual([name for name in names if name.endswith("optimizer")], [f"step{step}.optimizer" for step in range(1, 5)])
        self.assertNotIn("save", names)

    @unittest.skipUnless(is_at_least("torch", 2, 14), "torch before 2.14 has no conditional nodes")
    def test_control_flow_in_a_cuda_graph(self):
        report = self.ran([], "branching.py")
        peak = int(self.stderr.split("\npeak ")[-1].split()[0])
        self.assertEqual(report["ranks"][0]["peak"]["allocated_bytes"], peak)
        self.assertEqual(report["unimplemented"], [])

    def test_every_rank_writes_its_snapshot(self):
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", PORT]
        with tempfile.TemporaryDirectory() as folder:
            self.ran(["--snapshot", f"{folder}/memory.pickle"], "sharded.py", "ddp", launcher=launcher)
            self.assertEqual(sorted(os.listdir(folder)), ["memory.rank0.pickle", "memory.rank1.pickle"])
            self.ran(["--snapshot", f"{folder}/spawned.pickle"], "sharded.py", "ddp", "--spawn")
            self.assertLessEqual({"spawned.rank0.pickle", "spawned.rank1.pickle"}, set(os.listdir(folder)))
            self.ran(["--snapshot", f"{folder}/memory.pickle", "--world-size", "2"], "sharded.py", "ddp")
            self.assertIn("memory.pickle", os.listdir(folder))

    def test_recurrent_layers(self):
        self.assertEqual(self.ran([], "recurrent.py")["unimplemented"], [])

    def test_torch_compile(self):
        phases = self.phases(self.ran([], "compiled.py"))
        self.assertEqual(len([name for name in phases if name.endswith(".backward")]), 3)

    @unittest.skipUnless(is_at_least("torch", 2, 5), "torch before 2.5 cannot compile that by itself")
    def test_exceptions_pass_through_compiled_code(self):
        phases = self.phases(self.ran([], "checkpointed.py"))
        self.assertEqual(len([name for name in phases if name.endswith(".backward")]), 2)

    def test_a_grad_scaler_skips_no_step(self):
        self.ran([], "scaled.py")

    def test_reads(self):
        answers = self.ran([], "reads.py")["answers"]
        self.assertTrue(all(answer["place"].split(":")[0].endswith("reads.py") for answer in answers), answers)

    def test_evaluation_and_saving_are_phases(self):
        phases = self.phases(self.ran([], "evaluated.py"))
        self.assertIn("evaluation", phases)
        self.assertIn("save", phases)

    def test_out_of_memory(self):
        report = self.ran(["--memory", "20GiB"], "full.py", status=1)
        self.assertIn("CUDA out of memory. Tried to allocate 4.00 GiB.", report["message"])
        self.assertIn("GPU 0 has a total capacity of 20.00 GiB", report["message"])

    @needs("transformers", "peft")
    def test_trainer_with_lora(self):
        self.assertIn("adapter", self.phases(self.ran([], "trainer.py", "lora")))

    @needs("transformers", "peft", "bitsandbytes")
    def test_trainer_with_qlora(self):
        peak = self.ran(["--inventory"], "trainer.py", "qlora")["ranks"][0]["peak"]
        self.assertGreater(peak["categories"]["quant_state"], 0)

    @needs("transformers", "peft", "liger_kernel")
    def test_liger(self):
        self.ran([], "trainer.py", "liger")


if __name__ == "__main__":
    unittest.main()
