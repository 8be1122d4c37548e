#include <cstdint>
#include <string>

#include "app/option_kit.h"
#include "app/options.h"
#include "app/validators.h"
#include "plan/options.h"

namespace qlp::app {
namespace {

constexpr std::int64_t kMostSteps = 4096;  // whose phases a timeline can number

}  // namespace

CLI::App& add_command(CLI::App& root, VerifyArguments& a) {
  CLI::App& command =
      new_command(root, "verify", "Run the step of a plan with real data: measured beside predicted, for every rank",
                  "Examples:\n"
                  "  qlora-plan verify job.yaml --gpus 8 --plan fsdp2     one process for each GPU\n"
                  "  qlora-plan verify configs/tiny-qlora.yaml --device cpu\n"
                  "  qlora-plan verify job.yaml --plan ddp --runner torch --device null\n\n"
                  "Under torchrun, srun or mpirun each process is a rank of theirs. Exit status: 0 within\n"
                  "tolerance, 1 outside it or out of memory, 3 a rank died, hung or could not run.",
                  a.common);
  add_job(command, a.job);
  add_machine(command, a.job);
  add_choice<VerifyDevice>(
      command, "--device", a.device,
      "What computes: cuda; cpu, where ranks are threads; null, a GPU that only keeps books [cuda]")
      ->type_name("NAME")
      ->group("Run");
  add_choice<VerifyRunner>(
      command, "--runner", a.runner,
      "Whose step: own; torch, that of the libraries of the job's stack, traced with --device null [own]")
      ->type_name("NAME")
      ->group("Run");
  command
      .add_option("--python", a.python,
                  "With --runner torch: an interpreter with these libraries\n"
                  "[of an environment that qlora-plan env made]")
      ->type_name("PYTHON")
      ->group("Run");
  command.add_option("--steps", a.steps, "Optimizer steps that are run [2]")
      ->type_name("K")
      ->check(whole_number(1, kMostSteps))
      ->group("Run");
  auto* world = command
                    .add_option("--world-size", a.job.gpus,
                                "With --rank: play one rank of so many by itself,\n"
                                "with copies instead of the wire")
                    ->type_name("N")
                    ->check(whole_number(1, kMostRanks))
                    ->group("Run");
  auto* rank = command.add_option("--rank", a.rank, "The rank that is played by itself")
                   ->type_name("R")
                   ->check(whole_number(0))
                   ->group("Run");
  world->excludes(command.get_option("--gpus"));
  world->needs(rank);
  rank->needs(world);
  command.add_option("--timeout", a.timeout, "Seconds without a word after which a rank hangs [60]")
      ->type_name("S")
      ->check(whole_number(1, 86'400))
      ->group("Run");
  command
      .add_option("--rendezvous", a.rendezvous,
                  "Where processes that another launcher started meet: a directory that all nodes see\n"
                  "[on one node: one in the system's folder for temporary files]")
      ->type_name("DIR")
      ->group("Run");
  command
      .add_option_function<std::string>(
          "--tolerance", [&a](const std::string& text) { a.tolerance = *parse_tolerance(text); },
          "How far allocated figures may be off: 2MiB, 1% [0B; on cuda 1%]")
      ->type_name("T")
      ->check(tolerance_text())
      ->group("Output");
  command.add_option("--calibrate", a.calibrate, "Also write what was measured of this machine, for --machine")
      ->type_name("FILE")
      ->group("Output");
  command.add_flag("--stamp", a.stamp, "Note time, host and job file in what is written")->group("Output");
  command.add_option("--as-rank", a.as_rank)->group("");
  return command;
}

CLI::App& add_command(CLI::App& root, TraceArguments& a) {
  CLI::App& command =
      new_command(root, "trace", "Run an unchanged training program on a GPU that is not there, and measure it",
                  "The program and its arguments follow --. What it prints goes to stderr.\n\n"
                  "Examples:\n"
                  "  qlora-plan trace --gpu \"H100 SXM5 80GB\" --steps 2 -- python train.py --lr 1e-4\n"
                  "  qlora-plan trace --world-size 64 --rank 0 -- torchrun --nproc-per-node 8 train.py",
                  a.common);
  command.add_option("--gpu", a.gpu, "The GPU, by its name in the catalogue [A100 SXM4 80GB]")
      ->type_name("NAME")
      ->group("Input");
  add_size(command, "--memory", "What CUDA gives on it, instead of the catalogue's", a.memory);
  command.add_option("--margin", a.margin, "Percent of the memory that is kept free [2]")
      ->type_name("PERCENT")
      ->check(percent_number())
      ->group("Input");
  command.add_option("--gpus", a.gpus, "GPUs that the program sees [1], for its own launcher to start ranks on")
      ->type_name("N")
      ->check(whole_number(1, 256))
      ->group("Input");
  command
      .add_option("--world-size", a.world_size,
                  "Play one rank of so many in one process, whatever launcher the program has")
      ->type_name("N")
      ->check(whole_number(1, std::int64_t{1} << 20))
      ->group("Input");
  command.add_option("--rank", a.rank, "Which one [0]")->type_name("R")->check(whole_number(0))->group("Input");
  command.add_option("--steps", a.steps, "End the program after so many optimizer steps [when it ends]")
      ->type_name("K")
      ->check(whole_number(1))
      ->group("Input");
  command
      .add_option("--answer", a.answers,
                  "What a read of a value that a kernel would have written gives (may be repeated);\n"
                  "WHAT is bool, float, int, compare, equal, nonzero, or a place: train.py:120=false")
      ->type_name("WHAT=VALUE")
      ->check(answer_text())
      ->group("Input");
  command
      .add_option("--timeout", a.timeout,
                  "End a program that prints nothing and gets nowhere for so long; 0: never [600]")
      ->type_name("SECONDS")
      ->check(whole_number(0))
      ->group("Input");
  command.add_flag("--inventory", a.inventory, "Also list what is alive at the peak (slower)")->group("Output");
  command
      .add_option("--snapshot", a.snapshot,
                  "Write PyTorch's memory snapshot to this file (slower), with the rank in its name where\n"
                  "several run")
      ->type_name("FILE")
      ->group("Output");
  return command;
}

}  // namespace qlp::app
