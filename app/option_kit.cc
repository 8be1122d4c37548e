#include "app/option_kit.h"

#include "base/text.h"
#include "plan/catalogue.h"
#include "plan/options.h"

namespace qlp::app {

CLI::App& new_command(CLI::App& root, const std::string& name, const std::string& what, const std::string& examples,
                      CommonArguments& common) {
  CLI::App& command = *root.add_subcommand(name, what);
  command.get_formatter()->column_width(26);
  command.footer(examples);
  command.add_option("--json", common.json, "Write JSON to FILE, or to stdout if none is given")
      ->type_name("[=FILE]")
      ->group("Output");
  command.add_flag("-q,--quiet", common.quiet, "The result alone")->group("Output");
  command.add_flag("-v,--verbose", common.verbose, "Also defaults that were used and sources of figures")
      ->group("Output");
  add_choice<ColorMode>(command, "--color", common.color,
                        "When to use colours: auto (on a terminal), always, never [auto]")
      ->type_name("WHEN")
      ->group("Output");
  return command;
}

void add_job(CLI::App& command, JobArguments& job) {
  command
      .add_option("JOB", job.file, "The job file (YAML), or a training file of axolotl, LLaMA-Factory or TRL as it is")
      ->required()
      ->type_name("FILE")
      ->group("Input");
  command.add_option("--gpus", job.gpus, "Number of ranks, instead of the job's cluster.world_size")
      ->type_name("N")
      ->check(whole_number(1, kMostRanks))
      ->group("Input");
  command.add_option("--gpu", job.gpu, "The GPU, instead of the job's cluster.gpu: a name of the catalogue")
      ->type_name("NAME")
      ->group("Input");
  command
      .add_option("--model", job.model,
                  "A config.json or its folder, or a model of the catalogue, instead of the job's")
      ->type_name("MODEL")
      ->group("Input");
  command
      .add_option("--launch", job.launch, "A file of accelerate or DeepSpeed that the job is run with, as plans: FILE")
      ->type_name("FILE")
      ->group("Input");
  command.add_option("--plan", job.plan, "Only this plan: " + join(kAllPlanNames))
      ->type_name("NAME")
      ->check(one_of(kAllPlanNames))
      ->group("Input");
}

void add_machine(CLI::App& command, JobArguments& job) {
  command
      .add_option("--machine", job.machine,
                  "A machine profile (verify --calibrate): what was measured there instead of models,\n"
                  "and no margin unless the job asks for one")
      ->type_name("FILE")
      ->group("Input");
}

void add_size(CLI::App& command, const char* name, const char* what, std::optional<Bytes>& size) {
  command
      .add_option_function<std::string>(
          name, [&size](const std::string& text) { size = *parse_size(text); }, what)
      ->type_name("SIZE")
      ->check(size_text())
      ->group("Input");
}

}  // namespace qlp::app
