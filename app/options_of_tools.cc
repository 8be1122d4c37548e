#include <array>
#include <string>
#include <string_view>

#include "app/option_kit.h"
#include "app/options.h"
#include "app/validators.h"
#include "base/text.h"

namespace qlp::app {
namespace {

constexpr std::array<std::string_view, 3> kFloats{"float32", "float16", "bfloat16"};

}  // namespace

CLI::App& add_command(CLI::App& root, SparseWeightsArguments& a) {
  CLI::App& command =
      new_command(root, "sparse-weights", "Write a checkpoint of any size that takes no room: sparse files of zeros",
                  "Examples:\n"
                  "  qlora-plan sparse-weights llama-3.1-405b weights    from_pretrained loads it\n"
                  "  qlora-plan sparse-weights config.json weights --format bnb-4bit --layers 4",
                  a.common);
  command
      .add_option("CONFIG", a.source,
                  "A config.json, a folder that holds one, a job file, or a model's name (qlora-plan models)")
      ->required()
      ->group("Input");
  command.add_option("DIR", a.directory, "The folder to write; its files are replaced if all are ours")
      ->required()
      ->group("Input");
  command
      .add_option_function<std::string>(
          "--from-python", [&](const std::string& python) { a.python = python; },
          "Take the names of the tensors from the transformers of this interpreter [python3],\n"
          "for models whose layers are not written down here")
      ->type_name("[=PYTHON]")
      ->group("Input");
  command.add_option("--layers", a.layers, "Only so many of the model's layers")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Input");
  command
      .add_option_function<std::string>(
          "--dtype", [&](const std::string& word) { a.dtype = *dtype_from_name(word); },
          "Of the weights: float32, float16, bfloat16 [the config's]")
      ->type_name("DTYPE")
      ->check(one_of(kFloats))
      ->group("Output");
  add_choice<CheckpointFormat>(command, "--format", a.format,
                               "How weights are stored: plain, bnb-4bit, gptq, awq, mxfp4 [as the config says]")
      ->type_name("FORMAT")
      ->group("Output");
  command.add_option("--group-size", a.group_size, "Inputs that share a scale in gptq and awq [128]")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Output");
  command
      .add_option_function<std::string>(
          "--shard-size", [&](const std::string& text) { a.shard_size = *parse_size(text); },
          "Of each file at most, a larger tensor apart [4GB]")
      ->type_name("SIZE")
      ->check(size_text())
      ->group("Output");
  return command;
}

CLI::App& add_command(CLI::App& root, EnvArguments& a) {
  CLI::App& command =
      new_command(root, "env", "Make a Python environment with the libraries of a stack in their versions",
                  "Examples:\n"
                  "  qlora-plan env create 2025-10            torch 2.8 and what goes with it\n"
                  "  qlora-plan env create job.yaml           the versions of the job's stack\n"
                  "  qlora-plan env list                      those that there are",
                  a.common);
  add_choice<EnvAction>(command, "ACTION", a.action, "create, list")->required()->group("Input");
  command.add_option("STACK", a.stack, "To create: a stack that list names, or a job file")->group("Input");
  command.add_option("DIR", a.directory, "Where, instead of a folder of the user's data")->group("Input");
  command.add_option("--python", a.python, "The interpreter that it is made with [python3]")
      ->type_name("PYTHON")
      ->group("Input");
  return command;
}

CLI::App& add_command(CLI::App& root, GpusArguments& a) {
  return new_command(root, "gpus", "List the GPU catalogue",
                     "Examples:\n"
                     "  qlora-plan gpus                          what CUDA gives on each GPU\n"
                     "  qlora-plan gpus -v                       with the source of every figure",
                     a.common);
}

CLI::App& add_command(CLI::App& root, ModelsArguments& a) {
  return new_command(root, "models", "List the models that are known by name",
                     "Examples:\n"
                     "  qlora-plan models                        for model.name in a job file\n"
                     "  qlora-plan models --json                 the same as a JSON array",
                     a.common);
}

CLI::App& add_command(CLI::App& root, SchemaArguments& a) {
  return new_command(root, "schema", "Print the JSON Schema of the report",
                     "Examples:\n"
                     "  qlora-plan schema                        to stdout\n"
                     "  qlora-plan schema --json=schema.json     to a file",
                     a.common);
}

}  // namespace qlp::app
