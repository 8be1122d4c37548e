#!/usr/bin/env python3
"""The program from outside: exit codes, what goes to stdout and what to stderr, help, files.

The environment's QLORA_PLAN names the binary. `--update` writes test/cli/help.txt anew.
"""

import json
import os
import pty
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLAN = os.environ.get("QLORA_PLAN", "qlora-plan")
JOB = "configs/tiny-qlora.yaml"
HELP = Path(__file__).with_name("help.txt")
COMMANDS = ["estimate", "search", "explain", "check", "export", "trace", "sparse-weights", "env", "verify", "gpus", "models", "schema"]


def run(*args, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")} | environment
    return subprocess.run([PLAN, *args], cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def run_on_terminal(*args, **environment):
    """stdout and stderr are a terminal."""
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | environment
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PLAN, *args], cwd=ROOT, env=env, stdout=theirs, stderr=theirs)
    os.close(theirs)
    output = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
    os.close(ours)
    return process.wait(), output.decode()


def help_text():
    return "\n".join(f"$ qlora-plan {' '.join(args)}\n{run(*args).stdout}" for args in [["--help"], *([c, "--help"] for c in COMMANDS)])


class Cli(unittest.TestCase):
    maxDiff = None

    def refused(self, *args):
        """A command line that makes no sense: status 2, nothing on stdout, one error on stderr."""
        result = run(*args)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        return result.stderr

    def bad_job(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.yaml")
            Path(path).write_text(text, encoding="utf-8")
            result = run("estimate", path)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        return result.stderr.replace(folder + "/", "")

    def test_help_is_as_recorded(self):
        self.assertEqual(help_text(), HELP.read_text(encoding="utf-8"))

    def test_every_help_has_two_examples(self):
        for command in COMMANDS:
            self.assertGreaterEqual(run(command, "--help").stdout.count(f"  qlora-plan {command}"), 2, command)

    def test_request_to_a_scheduler(self):
        result = run("export", JOB, "--to", "slurm", "-q")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("#SBATCH --gpus-per-node=", result.stdout)

    def test_search(self):
        result = run("search", JOB, "--for", "seq_len", "--most", "192", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["search"]["key"], "seq_len")
        self.assertEqual(report["search"]["plans"][0]["value"], 192)
        self.assertEqual(report["recommended"], report["search"]["plans"][0]["name"])
        grid = run("search", JOB, "--most", "2", "--along", "seq_len=64,128", "-q")
        self.assertRegex(grid.stdout.splitlines()[0], r"^seq_len +64 +128$")
        self.assertIn("did you mean seq_len", self.refused("search", JOB, "--along", "seqlen=64"))
        self.assertIn("no values", self.refused("search", JOB, "--along", "seq_len"))
        self.assertIn("'x' is not a whole number", self.refused("search", JOB, "--along", "seq_len=64,x"))
        self.assertIn("along itself", self.refused("search", JOB, "--for", "r", "--along", "r=8"))

    def test_ranks_and_mesh_agree(self):
        job = Path(ROOT, JOB).read_text(encoding="utf-8")
        self.assertIn("world_size: 2", job)
        job = job.replace("world_size: 2", "world_size: 2\n  mesh: {pp: 2}")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.yaml")
            Path(path).write_text(job, encoding="utf-8")
            self.assertIn("does not divide world_size, 3", self.refused("estimate", path, "--gpus", "3"))

    def test_a_training_file_of_another_tool_and_the_job_that_it_means(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "axolotl.yml")
            Path(path).write_text("base_model: org/some-model\nadapter: lora\nlora_r: 4\nlora_target_linear: true\n"
                                  "sequence_len: 16\nbf16: true\nnot_known: 1\n", encoding="utf-8")
            self.assertIn("--model FILE", self.refused("estimate", path, "--gpu", "L4"))
            there = [path, "--gpu", "L4", "--model", "llama-3.2-1b", "--gpus", "2"]
            result = run("estimate", *there, "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("not_known", result.stderr)
            report = json.loads(result.stdout)
            self.assertEqual([plan["name"] for plan in report["plans"]], ["ddp"])
            job = os.path.join(folder, "job.yaml")
            self.assertEqual(run("export", *there, "--to", "job", "-o", job).returncode, 0)
            again = json.loads(run("estimate", job, "--json").stdout)
            self.assertEqual(again["plans"], report["plans"])

    def test_export_to_a_file_and_its_json(self):
        self.refused("export", JOB, "--to", "accelerate", "--json")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "launch.yaml")
            result = run("export", JOB, "--plan", "ddp", "--to", "accelerate", "-o", path)
            self.assertEqual((result.returncode, result.stdout), (0, ""))
            self.assertIn("distributed_type: MULTI_GPU", Path(path).read_text(encoding="utf-8"))
        lists = run("export", JOB, "--plan", "ddp").stdout
        names = {}
        exec(lists, names)  # Python that a training script can use
        self.assertEqual((names["IGNORED"], names["SHARDED"]), ([], []))
        self.assertTrue(names["REPLICATED"])

    def test_a_job_file_is_not_overwritten(self):
        text = Path(ROOT, JOB).read_text(encoding="utf-8")
        self.assertIn("overwrite", self.refused("estimate", JOB, f"--json={JOB}"))
        self.assertIn("overwrite", self.refused("export", JOB, "--plan", "ddp", "-o", JOB))
        self.assertIn("overwrite", self.refused("explain", JOB, "--plan", "ddp", "--events", JOB))
        self.assertIn("overwrite", self.refused("estimate", JOB, "--machine", f"./{JOB}", f"--json={JOB}"))
        self.assertEqual(Path(ROOT, JOB).read_text(encoding="utf-8"), text)

    def test_links_stay_and_lead_to_the_result(self):
        with tempfile.TemporaryDirectory() as folder:
            target, link = Path(folder, "report.json"), Path(folder, "link.json")
            link.symlink_to(target)
            for there in (False, True):
                if there:
                    target.write_text("old", encoding="utf-8")
                self.assertEqual(run("estimate", JOB, f"--json={link}").returncode, 0)
                self.assertTrue(link.is_symlink())
                self.assertIn("plans", json.loads(target.read_text(encoding="utf-8")))
            self.assertEqual(sorted(os.listdir(folder)), ["link.json", "report.json"])

    def test_check_fails_on_errors_and_strictly_on_warnings(self):
        clean = run("check", JOB, "--plan", "ddp")
        self.assertEqual(clean.returncode, 0, clean.stdout)
        over = run("check", JOB, "--plan", "ddp", "--budget", "1MiB")
        self.assertEqual(over.returncode, 1)
        self.assertIn("over-budget", over.stdout)

    def test_version(self):
        result = run("--version")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^qlora-plan \d+\.\d+\.\d+\n$")

    def test_usage_errors_say_what_was_meant(self):
        self.assertIn("no command: commands are estimate,", self.refused())
        self.assertIn("did you mean estimate?", self.refused("estmate", JOB))
        self.assertIn("did you mean --gpus?", self.refused("estimate", JOB, "--gpuss", "4"))
        self.assertIn("how many there are is --gpus", self.refused("estimate", JOB, "--gpu", "4"))
        self.assertIn("did you mean always?", self.refused("estimate", JOB, "--color", "alwais"))
        self.assertIn("did you mean fsdp2?", self.refused("estimate", JOB, "--plan", "fsdp3"))
        self.assertIn("JOB is required", self.refused("estimate"))
        self.assertIn("'0' is out of range: expected 1 to 65536", self.refused("estimate", JOB, "--gpus", "0"))
        self.assertIn("'2x' is not a whole number: expected 0 or more", self.refused("explain", JOB, "--rank", "2x"))
        self.assertIn("expected 1 or more", self.refused("explain", JOB, "--top", "-3"))
        self.assertIn("exclude each other", self.refused("gpus", "-q", "-v"))
        self.assertIn("Try 'qlora-plan estimate --help'", self.refused("estimate", JOB, "--gpus", "x"))
        several = self.refused("estimate", JOB, "--gpus", "x", "--plan=fsdp3", "--color", "alwais", "--wht", "--jsn=o")
        for told in ("'x' is not", "did you mean fsdp2?", "did you mean always?", "option '--wht'", "mean --json?"):
            self.assertIn(told, several)
        self.assertEqual(several.count("error"), 5)
        twice = self.refused("estimate", "--plan", "fsdp3", "--wht", "--plan", "fsdp2")
        self.assertEqual([twice.count(told) for told in ("'fsdp3' is", "JOB is required", "'--wht'")], [1, 1, 1])

    def test_a_missing_job_file(self):
        self.assertIn("none.yaml: error: ", self.refused("estimate", "none.yaml"))

    def test_all_errors_of_a_job_at_once_with_their_places(self):
        job = (ROOT / JOB).read_text(encoding="utf-8")
        line = 1 + job[: job.index("seq_len:")].count("\n")
        stderr = self.bad_job(job.replace("seq_len:", "seq_lne:").replace("nf4", "nf5"))
        self.assertIn("error: quantization.quant_type: ", stderr)
        self.assertIn("did you mean nf4?", stderr)
        self.assertIn(f"job.yaml:{line}:", stderr)
        self.assertIn("did you mean seq_len?", stderr)
        lines = stderr.splitlines()
        at = next(i for i, text in enumerate(lines) if text.strip().startswith(f"{line} | "))
        source, caret = lines[at : at + 2]
        self.assertEqual(source.index("seq_lne"), caret.index("^"))

    def test_a_job_file_cannot_steer_the_terminal(self):
        self.assertNotIn("\x1b", self.bad_job("schema: 1\n\"\\e[31mred\": \x1b[31m\n"))
        self.assertNotIn("\x1b", self.refused("estimate", "\x1b[31m.yaml"))
        shapes = "family: llama, hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 1, vocab_size: 9"
        job = f'schema: 1\nmodel: {{name: "\\e[31mred\\u009b\\nplan", {shapes}}}\ntraining: {{seq_len: 8}}\ncluster: {{gpu: L4}}\n'
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.yaml")
            Path(path).write_text(job, encoding="utf-8")
            for command in ("estimate", "explain", "check", "export"):
                result = run(command, path)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("?[31mred??plan", result.stdout)
                self.assertNotRegex(result.stdout, "[\x1b\x9b]")

    def test_estimate_answers(self):
        result = run("estimate", JOB)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("recommended: ", result.stdout)
        for plan in ("single", "ddp", "fsdp2", "fsdp1-full-shard"):
            self.assertRegex(result.stdout, rf"(?m)^{plan} ")

    def test_estimate_says_that_nothing_fits(self):
        job = (ROOT / JOB).read_text(encoding="utf-8")
        small = job.replace("cluster:\n", "cluster:\n  memory: 64MiB\n")
        self.assertNotEqual(small, job)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.yaml")
            Path(path).write_text(small, encoding="utf-8")
            result = run("estimate", path)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("nothing fits", result.stdout)
            result = run("estimate", path, "--json")
            self.assertEqual((result.returncode, json.loads(result.stdout)["verdict"]), (1, "does_not_fit"))

    def test_json_on_stdout_is_the_report_alone(self):
        result = run("estimate", JOB, "--json", "--gpus", "4")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        report = json.loads(result.stdout)
        self.assertEqual(report["job"]["cluster"]["world_size"], 4)
        self.assertEqual(report["verdict"], "fits")
        self.assertNotIn("stamp", report)
        self.assertIn(report["recommended"], [plan["name"] for plan in report["plans"]])
        self.assertEqual(result.stdout, run("estimate", JOB, "--json", "--gpus", "4").stdout)

    def test_the_report_is_as_the_schema_says(self):
        schema = json.loads(run("schema").stdout)
        self.assertEqual(schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
        report = json.loads(run("estimate", JOB, "--json", "--required", "--stamp").stdout)
        self.assertEqual(report["stamp"]["job_file"], JOB)
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not installed; test/report validates the same schema")
        jsonschema.Draft202012Validator(schema).validate(report)

    def test_json_to_a_file_is_whole_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            result = run("estimate", JOB, f"--json={path}")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("recommended: ", result.stdout)
            self.assertEqual(os.listdir(folder), ["report.json"])
            json.loads(Path(path).read_text(encoding="utf-8"))
            result = run("estimate", JOB, f"--json={folder}/none/report.json")
            self.assertEqual(result.returncode, 3)
            self.assertIn("cannot write", result.stderr)

    def test_output_that_cannot_be_written_is_no_success(self):
        for command in (["gpus"], ["--version"], ["estimate", JOB]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run([PLAN, *command], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
            self.assertEqual(result.returncode, 3, command)

    def test_a_file_that_may_not_grow_is_an_error_of_writing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            limited = ["sh", "-c", 'ulimit -f 1; exec "$0" "$@"', PLAN, "estimate", JOB, f"--json={path}"]
            result = subprocess.run(limited, cwd=ROOT, capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("cannot write", result.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_one_plan_and_quiet(self):
        result = run("estimate", JOB, "--plan", "ddp", "-q")
        self.assertEqual(result.returncode, 0, result.stderr)
        heading, row = result.stdout.splitlines()
        self.assertTrue(heading.startswith("plan ") and row.startswith("ddp "))

    def test_verbose_lists_defaults(self):
        self.assertIn("Notes and defaults:", run("estimate", JOB, "-v").stdout)

    def test_explain(self):
        result = run("explain", JOB, "--plan", "ddp")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("plan ddp, rank 0", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^ +\d+\.\d{3} MiB in +\d+ blocks \(\d+x\d+")
        phase = run("explain", JOB, "--plan", "ddp", "--phase", "micro1.backward")
        self.assertRegex(phase.stdout, r"(?m)^peak \d+ bytes .*: micro1\.backward$")
        wrong = run("explain", JOB, "--plan", "ddp", "--phase", "micro1.backwrd")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean micro1.backward?", wrong.stderr)
        stopped = run("explain", JOB, "--plan", "zero3", "--json")
        self.assertEqual(stopped.returncode, 1)
        self.assertFalse(json.loads(stopped.stdout)["plans"][0]["applicable"])

    def test_verify_on_the_cpu_is_as_predicted(self):
        for job in ("configs/tiny-qlora.yaml", "configs/tiny-full.yaml"):
            result = run("verify", job, "--device", "cpu", "--plan", "single", "--steps", "3", "--json")
            self.assertEqual((result.returncode, result.stderr), (0, ""), job)
            verification = json.loads(result.stdout)["verification"]
            self.assertEqual(verification["verdict"], "within_tolerance")
            self.assertEqual((verification["world_size"], len(verification["ranks"])), (1, 1))
            rank = verification["ranks"][0]
            judged = [figure for figure in rank["figures"] if figure["judged"]]
            self.assertGreater(len(judged), 10)
            self.assertEqual([figure for figure in judged if figure["unaccounted_bytes"] != 0], [])
            self.assertEqual(len(rank["losses"]), 3)
            self.assertTrue(all(0 < loss < 20 for loss in rank["losses"]), rank["losses"])
        text = run("verify", JOB, "--device", "cpu", "--plan", "single")
        self.assertEqual((text.returncode, text.stderr), (0, ""))
        self.assertIn("within tolerance (0B of allocated): every judged figure is as predicted", text.stdout)
        self.assertRegex(text.stdout, r"(?m)^micro1\.backward +\d")

    def test_verify_that_runs_out_of_memory_is_an_answer(self):
        small = Path(ROOT, JOB).read_text(encoding="utf-8").replace("cluster:\n", "cluster:\n  memory: 632MiB\n")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.yaml")
            Path(path).write_text(small, encoding="utf-8")
            result = run("verify", path, "--device", "cpu", "--plan", "single", "--json")
            self.assertEqual(result.returncode, 1, result.stderr)
            verification = json.loads(result.stdout)["verification"]
            self.assertEqual(verification["verdict"], "out_of_memory")
            self.assertEqual(verification["ranks"][0]["end"], "out_of_memory")
            self.assertIn("micro1.", verification["ranks"][0]["state"])

    def test_verify_says_what_it_cannot_do(self):
        self.assertIn("expected 0 to 1", self.refused("verify", JOB, "--device", "cpu", "--world-size", "2", "--rank", "2"))
        self.assertIn("--rank", self.refused("verify", JOB, "--device", "cpu", "--world-size", "2"))
        self.assertIn("keeps no books", self.refused("verify", JOB, "--device", "cpu", "--calibrate", "m.yaml"))
        self.assertIn("did you mean cuda?", self.refused("verify", JOB, "--device", "cud"))
        self.assertIn("'1' has no unit", self.refused("verify", JOB, "--device", "cpu", "--tolerance", "1"))
        job = Path(ROOT, JOB).read_text(encoding="utf-8")
        many = job.replace("seq_len:", "gradient_accumulation_steps: 64\n  seq_len:")
        self.assertNotEqual(many, job)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.yaml")
            Path(path).write_text(many, encoding="utf-8")
            self.assertIn("run fewer", self.refused("verify", path, "--device", "cpu", "--plan", "single", "--steps", "4096"))
        large = run("verify", "configs/llama-3.1-405b-qlora-64.yaml", "--device", "cpu", "--plan", "single")
        self.assertEqual((large.returncode, large.stdout), (3, ""))
        self.assertIn("verify a smaller job, or on GPUs", large.stderr)
        none = run("verify", JOB, CUDA_VISIBLE_DEVICES="")  # with a driver or without: no GPU to be seen
        self.assertEqual((none.returncode, none.stdout), (3, ""))
        self.assertRegex(none.stderr, "no device code|no NVIDIA driver|no GPU|too few GPUs")
        launched = {"RANK": "0", "WORLD_SIZE": "2"}
        result = run("verify", JOB, "--device", "cpu", **launched)
        self.assertEqual(result.returncode, 2)
        self.assertIn("not started by torchrun", result.stderr)

    def test_a_machine_profile_takes_the_place_of_models(self):
        profile = (
            "schema: 1\ngpu: NVIDIA A100-SXM4-40GB\ncapacity: 40000MiB\nversions: [NCCL 2.28.9]\ncuda_context: 400MiB\n"
            "cublas: 10MiB\nlibrary_overhead: 90MiB\nnccl:\n"
            "  - {ranks: 2, ranks_per_node: 2, collectives: all_reduce, memory: 500MiB}\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "machine.yaml")
            Path(path).write_text(profile, encoding="utf-8")
            result = run("estimate", JOB, "--plan", "ddp", "--machine", path, "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            report = json.loads(result.stdout)
            terms = {term["name"]: term for term in report["plans"][0]["outside"]}
            self.assertEqual({name: term["device_bytes"] >> 20 for name, term in terms.items()},
                             {"cuda_context": 400, "library_overhead": 100, "nccl": 500})
            self.assertTrue(all(term["measured"] for term in terms.values()))
            self.assertEqual(report["job"]["cluster"]["margin"], 0)
            self.assertEqual(report["job"]["cluster"]["machine"]["gpu"], "NVIDIA A100-SXM4-40GB")
            for command in ("explain", "check"):
                self.assertEqual(run(command, JOB, "--plan", "ddp", "--machine", path).returncode, 0, command)
            Path(path).write_text(profile.replace("A100", "A10").replace("cublas: 10MiB", "cublas: 10"), encoding="utf-8")
            self.assertIn("machine.yaml:6:9: error: cublas: ", self.refused("estimate", JOB, "--machine", path))
            Path(path).write_text(profile.replace("A100-SXM4-40GB", "A10"), encoding="utf-8")
            self.assertIn("was measured on NVIDIA A10", self.refused("estimate", JOB, "--machine", path))

    def test_catalogues(self):
        self.assertIn("H100 SXM5 80GB", run("gpus").stdout)
        self.assertEqual(run("models").stdout.split(), json.loads(run("models", "--json").stdout))
        self.assertIn("H200 SXM 141GB", [gpu["name"] for gpu in json.loads(run("gpus", "--json").stdout)])

    def test_colours_follow_the_terminal_and_the_environment(self):
        self.assertNotIn("\x1b", run("gpus").stdout)
        self.assertIn("\x1b", run("gpus", "--color", "always").stdout)
        self.assertIn("\x1b", run_on_terminal("gpus")[1])
        self.assertNotIn("\x1b", run_on_terminal("gpus", NO_COLOR="1")[1])
        self.assertNotIn("\x1b", run_on_terminal("gpus", TERM="dumb")[1])
        self.assertNotIn("\x1b", run_on_terminal("gpus", "--color", "never")[1])


if __name__ == "__main__":
    if "--update" in sys.argv:
        HELP.write_text(help_text(), encoding="utf-8")
    else:
        unittest.main()
