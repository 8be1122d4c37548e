"""Tests of scripts/accuracy, with a fake qlora-plan."""
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts")
sys.path.insert(0, SCRIPTS)

from accuracy_lib import jobs, measured, summary  # noqa: E402

FAKE = os.path.join(HERE, "fake_qlora_plan.py")
OLD = jobs.STACKS["2025-01"]
NEW = jobs.STACKS["2025-10"]
PHASES = [{"phase": n, "retries": 0, **{k: 1000 for k in ("requested", "allocated", "active", "reserved")},
           **{k + "_now": 500 for k in ("requested", "allocated", "active", "reserved")}} for n in ("load", "micro1.forward", "end")]


def record(id, error=None, **case):
    r = {"stack": "2025-10", "case": dict({"id": id, "config": "m.json", "seq": 1}, **case)}
    if error:
        r["error"] = error
    else:
        r.update(peak=dict(requested=1000, allocated=1000, active=1000, reserved=1000), phases=PHASES)
    return r


ROW = dict(id="fms-a", stack="fms-hf-tuning 2.5.0 + transformers 4.48.1 + peft 0.13.2 + accelerate 1.0.1 + bitsandbytes 0.43.3",
           torch_version="2.4.1", model="mistralai/Mistral-7B-v0.1", method="qlora", quant="nf4+dq", quant_storage="bf16",
           compute_dtype="bf16", param_dtype="bf16", lora_r="16.0", lora_targets="q_proj v_proj", lora_dtype="fp32",
           optimizer="adamw_torch (foreach)", sharding="fsdp1-full", offload="no", n_gpus="2", gpu_type="A100-80GB", micro_batch="2",
           seq_len="4096", grad_accum="1", grad_ckpt="yes (reentrant)", attention_impl="flash-attn 2", loss_impl="plain",
           metric_kind="peak allocated (rank 0)", value="4000000", unit="B",
           notes="framework_config=none; alloc_after_train=2000000B; clip 1.0; bf16 flag on")


class Tables(unittest.TestCase):
    def accuracy(self, *contents):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for i, content in enumerate(contents):
                files.append(os.path.join(folder, f"file{i}"))
                with open(files[-1], "w") as f:
                    f.write(content)
            done = subprocess.run([sys.executable, os.path.join(SCRIPTS, "accuracy"), "--binary", FAKE, "--shared", folder, *files],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        table, _, rest = done.stdout.partition("\n\n")
        rows = list(csv.DictReader(io.StringIO(table)))
        return {(r["id"], r["metric"]): r for r in rows}, rest

    def test_a_case_gives_a_row_for_every_metric(self):
        rows, rest = self.accuracy(json.dumps(record("a")))
        self.assertEqual([m for _, m in rows], ["refused", "peak_requested", "peak_allocated", "peak_active", "peak_reserved",
                                                "end_requested", "end_allocated", "phase:load", "phase:micro1.forward", "phase:end"])
        self.assertEqual(rows["a", "peak_allocated"], dict(id="a", stack="2025-10", plan="single", method="full", metric="peak_allocated",
                                                           predicted="1010", measured="1000", error_percent="1.000000"))
        self.assertEqual(rows["a", "refused"]["error_percent"], "")
        self.assertEqual(rows["a", "end_allocated"]["predicted"], "505")
        self.assertIn("peak_requested: 1 of 1 equal to the byte", rest)
        self.assertIn("peak_allocated,2025-10,full,single,1,1.0000", rest)

    def test_the_slowest_gpu_is_compared_with_the_upper_end(self):
        rows, _ = self.accuracy(json.dumps(record("lazy", alloc_env={"NULLGPU_LAZY_EVENTS": "1"})))
        self.assertEqual(rows["lazy", "peak_reserved"]["predicted"], "1035")

    def test_refusals_are_compared(self):
        rows, rest = self.accuracy("\n".join(json.dumps(r) for r in (
            record("writeback", error="Cannot writeback", plan="fsdp1-no-shard", world=2),
            record("oom", error="CUDA out of memory", alloc_env={"NULLGPU_BYTES": "1029"}),
            record("tight", alloc_env={"NULLGPU_BYTES": "1100"}),
            record("wrong", plan="fsdp1-no-shard", world=2),
            record("alone", plan="fsdp1-no-shard"))))
        got = {k[0]: r["predicted"] for k, r in rows.items() if k[1] == "refused"}
        self.assertEqual(got, {"writeback": "1", "oom": "1", "tight": "0", "wrong": "1", "alone": "0"})
        self.assertIn("wrong: frozen parameters  (but it runs)", rest)
        self.assertIn("refused: 4 of 5 as measured; 1 refused that run, 0 planned", rest)

    def test_what_cannot_be_expressed_is_named_and_crashes_do_not_stop_the_rest(self):
        rows, rest = self.accuracy("\n".join(json.dumps(r) for r in (
            record("odd", future_key=1), record("crash", seq=666), record("garbage", seq=667), record("later", plan="tp"),
            {"case": {"id": "bare"}}, record("good"))))
        self.assertEqual({k[0] for k in rows}, {"good"})
        self.assertIn("4 of 6 cases could not be expressed", rest)
        self.assertIn("unknown keys of the case: future_key: odd", rest)
        self.assertIn("qlora-plan failed: exit code 4", rest)
        self.assertIn("1 of 6 cases out of scope so far", rest)

    def test_a_phase_that_the_report_lacks_costs_its_row_only(self):
        r = record("p")
        r["phases"] = PHASES + [dict(PHASES[0], phase="micro9.forward")]
        rows, rest = self.accuracy(json.dumps(r))
        self.assertIn(("p", "peak_allocated"), rows)
        self.assertIn("p: no such phase in the report: micro9.forward", rest)

    def test_boundary_cases_ask_for_the_required_memory(self):
        r = record("b")
        r.update(runs_with_bytes=1000)
        rows, _ = self.accuracy(json.dumps(r))
        self.assertEqual(rows["b", "required_reserved"]["predicted"], "1015")

    def test_measured_rows(self):
        text = io.StringIO()
        writer = csv.DictWriter(text, list(ROW))
        writer.writeheader()
        writer.writerow(ROW)
        writer.writerow(dict(ROW, id="fms-gptq", quant="gptq4"))
        rows, rest = self.accuracy(text.getvalue())
        self.assertEqual(rows["fms-a", "peak_allocated"]["predicted"], "4096010")
        self.assertEqual(rows["fms-a", "end_allocated"]["measured"], "2000000")
        self.assertEqual(rows["fms-a", "peak_allocated"]["plan"], "fsdp1-full")
        self.assertIn("1 x GPTQ base: fms-gptq", rest)


class Jobs(unittest.TestCase):
    def job(self, versions=NEW, **case):
        return jobs.from_case(dict({"config": "m.json"}, **case), versions, "/shared")

    def test_a_replicated_base_is_the_plan_local_base_from_accelerate_1_14(self):
        u8 = dict(plan="fsdp2", world=8, quant="nf4", adapter={"r": 8})
        self.assertEqual(self.job(**u8).plan, "fsdp2-local-base")
        self.assertEqual(self.job(versions=dict(NEW, accelerate="1.12.0"), **u8).plan, "fsdp2")
        self.assertEqual(self.job(**dict(u8, storage="bfloat16")).plan, "fsdp2")
        self.assertEqual(self.job(**dict(u8, plan="fsdp2-no-reshard")).sections["plans"], {"fsdp2-local-base": {"reshard_after_forward": False}})

    def test_config_resolves_against_shared_and_defaults_are_the_oracles(self):
        sections = self.job().sections
        self.assertEqual(sections["model"], {"config": "/shared/m.json", "overrides": {"torch_dtype": "bfloat16"}, "dtype": "bfloat16", "loading": "gpu"})
        self.assertEqual(sections["training"]["max_grad_norm"], 1.0)
        self.assertNotIn("quantization", sections)
        self.assertNotIn("adapter", sections)

    def test_checkpoints_are_bfloat16_whatever_the_description_says(self):
        self.assertEqual(self.job(overrides={"num_hidden_layers": 2}).sections["model"]["overrides"],
                         {"num_hidden_layers": 2, "torch_dtype": "bfloat16"})

    def test_the_launchers_precision_counts_where_the_trainer_has_none(self):
        def precision(**case):
            return self.job(**case).sections["training"]["mixed_precision"]

        fp16 = {"ACCELERATE_MIXED_PRECISION": "fp16"}
        self.assertEqual(precision(plan="fsdp2", world=2, env=fp16), "fp16")
        self.assertEqual(precision(plan="fsdp1-full-shard", world=2, env=fp16, bf16=True), "bf16")
        self.assertEqual(precision(plan="fsdp2", world=2), "no")
        size = {"FSDP_AUTO_WRAP_POLICY": "SIZE_BASED_WRAP", "FSDP_MIN_NUM_PARAMS": "5"}
        self.assertEqual(self.job(plan="fsdp2", world=2, env=size).sections["plans"], {"fsdp2": {"auto_wrap_policy": "size_based_wrap"}})

    def test_another_class_than_the_layers_is_said(self):
        for plan in ("fsdp1-full-shard", "fsdp2"):
            self.assertEqual(self.job(plan=plan, world=2, layer="LlamaAttention,LlamaMLP").sections["plans"],
                             {plan: {"transformer_cls_names_to_wrap": ["LlamaAttention", "LlamaMLP"]}})

    def test_the_launcher_says_how_weights_are_read_and_layers_repeated(self):
        efficient = {"FSDP_CPU_RAM_EFFICIENT_LOADING": "true", "FSDP_SYNC_MODULE_STATES": "true"}
        on_host = dict(plan="fsdp1-full-shard", world=2, loader="none")
        self.assertEqual(self.job(**on_host).sections["model"]["loading"], "cpu")
        self.assertEqual(self.job(**on_host, env=efficient).sections["model"]["loading"], "rank0")
        repeats = {"FSDP_ACTIVATION_CHECKPOINTING": "true"}
        newer = jobs.from_case(dict(config="m.json", plan="fsdp2", world=2, env=repeats), jobs.STACKS["2026-11"], "/shared")
        self.assertEqual(newer.sections["training"]["gradient_checkpointing"], {"use_reentrant": False})
        for case in (dict(env=efficient, loader="cuda"), dict(env=efficient, quant="nf4"), dict(env=repeats), dict(env=repeats, ckpt="reentrant")):
            with self.assertRaises(jobs.Unexpressed, msg=case):
                self.job(**dict(on_host, **case))

    def test_the_file_is_yaml(self):
        text = self.job(adapter={"r": 8, "target_modules": ["q_proj"]}, alloc_env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}).yaml()
        self.assertTrue(text.startswith("schema: 1\nmodel:\n  config: \"/shared/m.json\"\n"))
        self.assertIn("\nadapter:\n  type: \"lora\"\n  r: 8\n  target_modules: [\"q_proj\"]\n", text)
        self.assertIn("\nallocator: \"expandable_segments:True\"\n", text)

    def test_unknown_things_are_not_guessed(self):
        for case in (dict(env={"FSDP_FORWARD_PREFETCH": "true"}), dict(adapter={"r": 8, "use_qalora": True}), dict(alloc_env={"X": "1"}),
                     dict(kbit=True), dict(config=None)):
            with self.assertRaises(jobs.Unexpressed, msg=case):
                self.job(**case)

    def test_measured_row(self):
        job = measured.from_row(ROW, "/shared")
        self.assertEqual(job.plan, "fsdp1-full-shard")
        self.assertEqual(job.sections["adapter"], dict(type="lora", r=16, target_modules=["q_proj", "v_proj"], lora_dropout=0.1))
        self.assertEqual(job.sections["stack"], OLD)
        self.assertEqual(job.sections["training"]["mixed_precision"], "bf16")
        self.assertEqual(measured.measured_values(dict(ROW, unit="GB (1e9)", value="14.5", notes="")), [("peak_allocated", 14_500_000_000)])

    def test_what_trl_casts_depends_on_precision_and_plan(self):
        note = "; prepare_model_for_kbit_training: norms fp32"
        single = dict(ROW, sharding="single", n_gpus="1", quant_storage="uint8", notes=ROW["notes"] + note)
        section = measured.from_row(single, "/shared").sections["quantization"]
        self.assertTrue(section["prepare_kbit"] and section["trl_bf16_cast"])
        section = measured.from_row(dict(single, notes=single["notes"].replace("bf16 flag", "fp16 flag")), "/shared").sections["quantization"]
        self.assertTrue(section["prepare_kbit"] and not section["trl_bf16_cast"])
        sharded = dict(ROW, notes=ROW["notes"] + "; prepare_model_for_kbit_training: no lasting upcast visible under FSDP")
        section = measured.from_row(sharded, "/shared").sections["quantization"]
        self.assertFalse(section["prepare_kbit"] or section["trl_bf16_cast"])


class Summary(unittest.TestCase):
    def test_percentiles_are_linear(self):
        self.assertEqual(summary.describe([-1, 2, -3, 4]), [4, "2.5000", "2.5000", "3.8500", "4.0000", "0.5000"])


if __name__ == "__main__":
    unittest.main()
