#include "app/option_kit.h"
#include "app/options.h"
#include "app/validators.h"
#include "estimate/check.h"

namespace qlp::app {

CLI::App& add_command(CLI::App& root, EstimateArguments& a) {
  CLI::App& command =
      new_command(root, "estimate", "Answer a job: what every plan takes on each GPU, and whether it fits",
                  "Examples:\n"
                  "  qlora-plan estimate job.yaml --gpus 4    the same job on four GPUs\n"
                  "  qlora-plan estimate axolotl.yml --gpu \"H100 SXM5 80GB\" --gpus 8   another tool's file as it is",
                  a.common);
  add_job(command, a.job);
  add_machine(command, a.job);
  command.add_flag("--required", a.required, "Search the least memory with which each plan runs (slower)")
      ->group("Input");
  command.add_flag("--mistakes", a.mistakes, "Also what common mistakes cost, beside the plans that were meant")
      ->group("Input");
  command.add_flag("--stamp", a.stamp, "Note time, host and job file in the JSON")->group("Output");
  return command;
}

CLI::App& add_command(CLI::App& root, SearchArguments& a) {
  CLI::App& command =
      new_command(root, "search", "How far a job can go: the largest batch, length or rank, the fewest GPUs",
                  "Examples:\n"
                  "  qlora-plan search job.yaml                   the largest micro batch under each plan\n"
                  "  qlora-plan search job.yaml --for world_size --along seq_len=4096,8192,16384",
                  a.common);
  add_job(command, a.job);
  add_machine(command, a.job);
  add_choice<SearchKey>(command, "--for", a.key,
                        "What to search: micro_batch_size, seq_len, r (the most), world_size (the least)\n"
                        "[micro_batch_size]")
      ->type_name("KEY")
      ->group("Input");
  command
      .add_option_function<std::string>(
          "--along", [&a](const std::string& text) { a.along = *parse_along(text); },
          "Search for each of these values of another key")
      ->type_name("KEY=N,N,..")
      ->check(along_text())
      ->group("Input");
  command.add_option("--most", a.most, "Try no value past this")
      ->type_name("N")
      ->check(whole_number(1, kMostSearched))
      ->group("Input");
  command
      .add_flag("--keep-cache", a.keeps_cache, "Only what runs without PyTorch's giving its cache back, which is slow")
      ->group("Input");
  return command;
}

CLI::App& add_command(CLI::App& root, ExplainArguments& a) {
  CLI::App& command = new_command(root, "explain", "Say what is alive at the peak of a plan, and what made it",
                                  "Examples:\n"
                                  "  qlora-plan explain job.yaml              the recommended plan: timeline and peak\n"
                                  "  qlora-plan explain job.yaml --plan ddp --phase micro1.forward",
                                  a.common);
  add_job(command, a.job);
  add_machine(command, a.job);
  command.add_option("--phase", a.phase, "The peak of this phase, by its name in the timeline")
      ->type_name("NAME")
      ->group("Input");
  command.add_option("--events", a.events, "Also write every allocation and free in their order to this file, as CSV")
      ->type_name("FILE")
      ->group("Output");
  command.add_option("--rank", a.rank, "This rank, instead of the worst")
      ->type_name("R")
      ->check(whole_number(0))
      ->group("Input");
  command.add_option("--top", a.top, "Lines of the inventory [40]")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Output");
  return command;
}

CLI::App& add_command(CLI::App& root, CheckArguments& a) {
  CLI::App& command =
      new_command(root, "check", "Hold a job against rules: what is set up wrongly, with the bytes and the fix",
                  "Examples:\n"
                  "  qlora-plan check job.yaml --plan fsdp2   findings; exit status 1 if one is an error\n"
                  "  qlora-plan check job.yaml --strict --ignore logits-dominate",
                  a.common);
  add_job(command, a.job);
  add_machine(command, a.job);
  add_size(command, "--budget", "Memory that a GPU may use (40GiB), instead of the job's less its margin", a.budget);
  command.add_flag("--strict", a.strict, "Warnings fail the check too")->group("Input");
  command.add_option("--ignore", a.ignored, "Leave findings of this rule out (may be repeated): " + join(kRuleCodes))
      ->type_name("CODE")
      ->check(one_of(kRuleCodes))
      ->group("Input");
  return command;
}

CLI::App& add_command(CLI::App& root, ExportArguments& a) {
  CLI::App& command = new_command(root, "export", "Write a plan as a file that sets it up",
                                  "Examples:\n"
                                  "  qlora-plan export job.yaml --plan fsdp2 --to accelerate -o fsdp2.yaml\n"
                                  "  qlora-plan export job.yaml --plan fsdp2-local-base   Python lists for fully_shard",
                                  a.common);
  add_job(command, a.job);
  add_choice<ExportFormat>(command, "--to", a.format,
                           "torch: what becomes of each parameter, as Python lists, with --json as JSON [torch];\n"
                           "accelerate: for accelerate launch --config_file; deepspeed: DeepSpeed's JSON;\n"
                           "runner: job and plan for scripts/torch_runner.py;\n"
                           "job: the job itself as a job file, with every default, of a file of another tool too;\n"
                           "slurm, kubernetes, htcondor: what it takes, as a request to that scheduler")
      ->type_name("FORMAT")
      ->group("Output");
  command.add_option("-o,--output", a.output, "Write to this file, instead of stdout")
      ->type_name("FILE")
      ->group("Output");
  return command;
}

}  // namespace qlp::app
