#include "app/arguments.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/validators.h"
#include "base/text.h"
#include "estimate/check.h"
#include "plan/catalogue.h"
#include "plan/job_names.h"
#include "plan/options.h"

namespace qlp::app {
namespace {

constexpr std::array<std::string_view, 11> kCommands{
    "estimate", "explain", "check", "export", "trace", "sparse-weights", "env", "verify", "gpus", "models", "schema"};
constexpr std::array<std::string_view, 3> kFloats{"float32", "float16", "bfloat16"};
constexpr std::array<std::string_view, 3> kColors{"auto", "always", "never"};

/// The words of an enum, in the order of its values.
template <NamedEnum E>
constexpr auto kWordsOf = [] {
  std::array<std::string_view, kEnumNames<E>.size()> words{};
  std::ranges::transform(kEnumNames<E>, words.begin(), &EnumName<E>::name);
  return words;
}();

class CommandLine {
 public:
  CommandLine() : root_{"Does this fine-tuning job fit, under which plan, and why?", "qlora-plan"} {
    root_.set_help_flag("-h,--help", "Print this help and exit");
    root_.set_version_flag("--version", "qlora-plan " QLP_VERSION, "Print the version and exit");
    root_.require_subcommand(0, 1);
    root_.get_formatter()->column_width(26);
    root_.footer(
        "Each command has its own --help.\n\n"
        "Examples:\n"
        "  qlora-plan estimate job.yaml             every plan of the job, the best first\n"
        "  qlora-plan explain job.yaml --plan fsdp2 what is alive at the peak\n\n"
        "Exit status: 0 it fits, 1 nothing fits, 2 usage or input error, 3 the environment\n"
        "cannot do it, 4 internal error, 130 interrupted.");
    add_estimate();
    add_explain();
    add_check();
    add_export();
    add_sparse_weights();
    add_env();
    add_verify();
    add_trace();
    gpus_ = add_command("gpus", "List the GPU catalogue",
                        "Examples:\n"
                        "  qlora-plan gpus                          what CUDA gives on each GPU\n"
                        "  qlora-plan gpus -v                       with the source of every figure",
                        gpus_arguments_.common);
    models_ = add_command("models", "List the models that are known by name",
                          "Examples:\n"
                          "  qlora-plan models                        for model.name in a job file\n"
                          "  qlora-plan models --json                 the same as a JSON array",
                          models_arguments_.common);
    schema_ = add_command("schema", "Print the JSON Schema of the report",
                          "Examples:\n"
                          "  qlora-plan schema                        to stdout\n"
                          "  qlora-plan schema --json=schema.json     to a file",
                          schema_arguments_.common);
  }

  std::variant<Arguments, Information, UsageError> parse(std::vector<std::string> words) {
    if (!words.empty() && !words.front().starts_with('-') &&
        std::ranges::find(kCommands, words.front()) == kCommands.end())
      return unknown_command(words.front());
    take_program(words);
    // CLI11 would take the next word as the value; ours are optional and only ever follow a '='.
    std::ranges::replace(words, std::string{"--json"}, std::string{"--json=-"});
    std::ranges::replace(words, std::string{"--from-python"}, std::string{"--from-python=python3"});
    std::ranges::reverse(words);  // as CLI11 takes them
    try {
      root_.parse(std::move(words));
    } catch (const CLI::CallForHelp&) {
      return Information{&chosen() == &root_ ? root_.help() : chosen().help("qlora-plan")};
    } catch (const CLI::CallForVersion&) {
      return Information{root_.version() + "\n"};
    } catch (const CLI::ExtrasError& error) {
      return unexpected_words(error);
    } catch (const CLI::ParseError& error) {
      return UsageError{error.what(), "", help_name()};
    }
    if (&chosen() == &root_) return UsageError{"no command: commands are " + join(kCommands), "", "qlora-plan"};
    if (*trace_ && trace_arguments_.program.empty())
      return UsageError{"no program to trace: write it after --", "qlora-plan trace -- python train.py", help_name()};
    if (*trace_ && trace_arguments_.rank >= trace_arguments_.world_size.value_or(1))
      return UsageError{"--rank: expected less than --world-size", "", help_name()};
    Arguments parsed = arguments();
    const auto& common = std::visit([](const auto& a) -> const CommonArguments& { return a.common; }, parsed);
    if (common.quiet && common.verbose) return UsageError{"--quiet and --verbose exclude each other", "", help_name()};
    return parsed;
  }

 private:
  CLI::App* add_command(const std::string& name, const std::string& what, const std::string& examples,
                        CommonArguments& common) {
    CLI::App* command = root_.add_subcommand(name, what);
    command->get_formatter()->column_width(26);
    command->footer(examples);
    add_common(*command, common);
    return command;
  }

  void add_common(CLI::App& command, CommonArguments& common) {
    command.add_option("--json", common.json, "Write JSON to FILE, or to stdout if none is given")
        ->type_name("[=FILE]")
        ->group("Output");
    command.add_flag("-q,--quiet", common.quiet, "The result alone")->group("Output");
    command.add_flag("-v,--verbose", common.verbose, "Also defaults that were used and sources of figures")
        ->group("Output");
    command.add_option("--color", color_, "When to use colours: auto (on a terminal), always, never [auto]")
        ->type_name("WHEN")
        ->check(one_of(kColors))
        ->group("Output");
  }

  void add_job(CLI::App& command, JobArguments& job) {
    command.add_option("JOB", job.file, "The job file (YAML)")->required()->type_name("FILE")->group("Input");
    command.add_option("--gpus", job.gpus, "Number of ranks, instead of the job's cluster.world_size")
        ->type_name("N")
        ->check(whole_number(1, kMostRanks))
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

  void add_estimate() {
    estimate_ = add_command("estimate", "Answer a job: what every plan takes on each GPU, and whether it fits",
                            "Examples:\n"
                            "  qlora-plan estimate job.yaml --gpus 4    the same job on four GPUs\n"
                            "  qlora-plan estimate job.yaml --json      everything, for machines",
                            estimate_arguments_.common);
    add_job(*estimate_, estimate_arguments_.job);
    add_machine(*estimate_, estimate_arguments_.job);
    estimate_
        ->add_flag("--required", estimate_arguments_.required,
                   "Search the least memory with which each plan runs (slower)")
        ->group("Input");
    estimate_
        ->add_flag("--mistakes", estimate_arguments_.mistakes,
                   "Also what common mistakes cost, beside the plans that were meant")
        ->group("Input");
    estimate_->add_flag("--stamp", estimate_arguments_.stamp, "Note time, host and job file in the JSON")
        ->group("Output");
  }

  void add_explain() {
    explain_ = add_command("explain", "Say what is alive at the peak of a plan, and what made it",
                           "Examples:\n"
                           "  qlora-plan explain job.yaml              the recommended plan: timeline and peak\n"
                           "  qlora-plan explain job.yaml --plan ddp --phase micro1.forward",
                           explain_arguments_.common);
    add_job(*explain_, explain_arguments_.job);
    add_machine(*explain_, explain_arguments_.job);
    explain_->add_option("--phase", explain_arguments_.phase, "The peak of this phase, by its name in the timeline")
        ->type_name("NAME")
        ->group("Input");
    explain_->add_option("--events", explain_arguments_.events,
                         "Also write every allocation and free in their order to this file, as CSV");
    explain_->add_option("--rank", explain_arguments_.rank, "This rank, instead of the worst")
        ->type_name("R")
        ->check(whole_number(0))
        ->group("Input");
    explain_->add_option("--top", explain_arguments_.top, "Lines of the inventory [40]")
        ->type_name("N")
        ->check(whole_number(1))
        ->group("Output");
  }

  void add_check() {
    check_ = add_command("check", "Hold a job against rules: what is set up wrongly, with the bytes and the fix",
                         "Examples:\n"
                         "  qlora-plan check job.yaml --plan fsdp2   findings; exit status 1 if one is an error\n"
                         "  qlora-plan check job.yaml --strict --ignore logits-dominate",
                         check_arguments_.common);
    add_job(*check_, check_arguments_.job);
    add_machine(*check_, check_arguments_.job);
    add_size(*check_, "--budget", "Memory that a GPU may use (40GiB), instead of the job's less its margin",
             check_arguments_.budget);
    check_->add_flag("--strict", check_arguments_.strict, "Warnings fail the check too")->group("Input");
    check_
        ->add_option("--ignore", check_arguments_.ignored,
                     "Leave findings of this rule out (may be repeated): " + join(kRuleCodes))
        ->type_name("CODE")
        ->check(one_of(kRuleCodes))
        ->group("Input");
  }

  void add_export() {
    export_ = add_command("export", "Write a plan as a file that sets it up",
                          "Examples:\n"
                          "  qlora-plan export job.yaml --plan fsdp2 --to accelerate -o fsdp2.yaml\n"
                          "  qlora-plan export job.yaml --plan fsdp2-local-base   Python lists for fully_shard",
                          export_arguments_.common);
    add_job(*export_, export_arguments_.job);
    add_choice<ExportFormat>(*export_, "--to", export_arguments_.format,
                             "torch: what becomes of each parameter, as Python lists, with --json as JSON [torch];\n"
                             "accelerate: for accelerate launch --config_file; deepspeed: DeepSpeed's JSON;\n"
                             "runner: job and plan for scripts/torch_runner.py")
        ->type_name("FORMAT")
        ->group("Output");
    export_->add_option("-o,--output", export_arguments_.output, "Write to this file, instead of stdout")
        ->type_name("FILE")
        ->group("Output");
  }

  void add_sparse_weights() {
    SparseWeightsArguments& arguments = sparse_weights_arguments_;
    sparse_weights_ =
        add_command("sparse-weights", "Write a checkpoint of any size that takes no room: sparse files of zeros",
                    "Examples:\n"
                    "  qlora-plan sparse-weights llama-3.1-405b weights    from_pretrained loads it\n"
                    "  qlora-plan sparse-weights config.json weights --format bnb-4bit --layers 4",
                    arguments.common);
    CLI::App& command = *sparse_weights_;
    command
        .add_option("CONFIG", arguments.source,
                    "A config.json, a folder that holds one, a job file, or a model's name (qlora-plan models)")
        ->required()
        ->group("Input");
    command.add_option("DIR", arguments.directory, "The folder to write; its files are replaced if all are ours")
        ->required()
        ->group("Input");
    command
        .add_option_function<std::string>(
            "--from-python", [&](const std::string& python) { arguments.python = python; },
            "Take the names of the tensors from the transformers of this interpreter [python3],\n"
            "for models whose layers are not written down here")
        ->type_name("[=PYTHON]")
        ->group("Input");
    command.add_option("--layers", arguments.layers, "Only so many of the model's layers")
        ->type_name("N")
        ->check(whole_number(1))
        ->group("Input");
    command
        .add_option_function<std::string>(
            "--dtype", [&](const std::string& word) { arguments.dtype = *dtype_from_name(word); },
            "Of the weights: float32, float16, bfloat16 [the config's]")
        ->type_name("DTYPE")
        ->check(one_of(kFloats))
        ->group("Output");
    add_choice<CheckpointFormat>(command, "--format", arguments.format,
                                 "How linear layers are stored: plain, bnb-4bit, gptq, awq [as the config says]")
        ->type_name("FORMAT")
        ->group("Output");
    command.add_option("--group-size", arguments.group_size, "Inputs that share a scale in gptq and awq [128]")
        ->type_name("N")
        ->check(whole_number(1))
        ->group("Output");
    command
        .add_option_function<std::string>(
            "--shard-size", [&](const std::string& text) { arguments.shard_size = *parse_size(text); },
            "Of each file at most, a larger tensor apart [4GB]")
        ->type_name("SIZE")
        ->check(size_text())
        ->group("Output");
  }

  void add_env() {
    EnvArguments& arguments = env_arguments_;
    env_ = add_command("env", "Make a Python environment with the libraries of a stack in their versions",
                       "Examples:\n"
                       "  qlora-plan env create 2025-10            torch 2.8 and what goes with it\n"
                       "  qlora-plan env create job.yaml           the versions of the job's stack\n"
                       "  qlora-plan env list                      those that there are",
                       arguments.common);
    add_choice<EnvAction>(*env_, "ACTION", arguments.action, "create, list")->required()->group("Input");
    env_->add_option("STACK", arguments.stack, "To create: a stack that list names, or a job file")->group("Input");
    env_->add_option("DIR", arguments.directory, "Where, instead of a folder of the user's data")->group("Input");
    env_->add_option("--python", arguments.python, "The interpreter that it is made with [python3]")
        ->type_name("PYTHON")
        ->group("Input");
  }

  void add_verify() {
    VerifyArguments& a = verify_arguments_;
    verify_ = add_command("verify", "Run the step of a plan with real data: measured beside predicted, for every rank",
                          "Examples:\n"
                          "  qlora-plan verify job.yaml --gpus 8 --plan fsdp2     one process for each GPU\n"
                          "  qlora-plan verify configs/tiny-qlora.yaml --device cpu\n"
                          "  qlora-plan verify job.yaml --plan ddp --runner torch --device null\n\n"
                          "Under torchrun, srun or mpirun each process is a rank of theirs. Exit status: 0 within\n"
                          "tolerance, 1 outside it or out of memory, 3 a rank died, hung or could not run.",
                          a.common);
    add_job(*verify_, a.job);
    add_machine(*verify_, a.job);
    add_choice<VerifyDevice>(
        *verify_, "--device", a.device,
        "What computes: cuda; cpu, where ranks are threads; null, a GPU that only keeps books [cuda]")
        ->type_name("NAME")
        ->group("Run");
    add_choice<VerifyRunner>(
        *verify_, "--runner", a.runner,
        "Whose step: own; torch, that of the libraries of the job's stack, traced with --device null [own]")
        ->type_name("NAME")
        ->group("Run");
    verify_
        ->add_option("--python", a.python,
                     "With --runner torch: an interpreter with these libraries\n"
                     "[of an environment that qlora-plan env made]")
        ->type_name("PYTHON")
        ->group("Run");
    verify_->add_option("--steps", a.steps, "Optimizer steps that are run [2]")
        ->type_name("K")
        ->check(whole_number(1))
        ->group("Run");
    auto* world = verify_
                      ->add_option("--world-size", a.job.gpus,
                                   "With --rank: play one rank of so many by itself,\n"
                                   "with copies instead of the wire")
                      ->type_name("N")
                      ->check(whole_number(1, kMostRanks))
                      ->group("Run");
    auto* rank = verify_->add_option("--rank", a.rank, "The rank that is played by itself")
                     ->type_name("R")
                     ->check(whole_number(0))
                     ->group("Run");
    world->excludes(verify_->get_option("--gpus"));
    world->needs(rank);
    rank->needs(world);
    verify_->add_option("--timeout", a.timeout, "Seconds without a word after which a rank hangs [60]")
        ->type_name("S")
        ->check(whole_number(1, 86'400))
        ->group("Run");
    verify_
        ->add_option("--rendezvous", a.rendezvous,
                     "Where processes that another launcher started meet: a directory that all nodes see\n"
                     "[on one node: one in the system's folder for temporary files]")
        ->type_name("DIR")
        ->group("Run");
    verify_
        ->add_option_function<std::string>(
            "--tolerance", [&a](const std::string& text) { a.tolerance = *parse_tolerance(text); },
            "How far allocated figures may be off: 2MiB, 1% [0B; on cuda 1%]")
        ->type_name("T")
        ->check(tolerance_text())
        ->group("Output");
    verify_->add_option("--calibrate", a.calibrate, "Also write what was measured of this machine, for --machine")
        ->type_name("FILE")
        ->group("Output");
    verify_->add_flag("--stamp", a.stamp, "Note time, host and job file in what is written")->group("Output");
    verify_->add_option("--as-rank", a.as_rank)->group("");
  }

  void add_trace() {
    trace_ = add_command("trace", "Run an unchanged training program on a GPU that is not there, and measure it",
                         "The program and its arguments follow --. What it prints goes to stderr.\n\n"
                         "Examples:\n"
                         "  qlora-plan trace --gpu \"H100 SXM5 80GB\" --steps 2 -- python train.py --lr 1e-4\n"
                         "  qlora-plan trace --world-size 64 --rank 0 -- torchrun --nproc-per-node 8 train.py",
                         trace_arguments_.common);
    TraceArguments& trace = trace_arguments_;
    trace_->add_option("--gpu", trace.gpu, "The GPU, by its name in the catalogue [A100 SXM4 80GB]")
        ->type_name("NAME")
        ->group("Input");
    add_size(*trace_, "--memory", "What CUDA gives on it, instead of the catalogue's", trace.memory);
    trace_->add_option("--margin", trace.margin, "Percent of the memory that is kept free [2]")
        ->type_name("PERCENT")
        ->check(CLI::Range(0.0, 100.0).description(""))
        ->group("Input");
    trace_->add_option("--gpus", trace.gpus, "GPUs that the program sees [1], for its own launcher to start ranks on")
        ->type_name("N")
        ->check(whole_number(1, 256))
        ->group("Input");
    trace_
        ->add_option("--world-size", trace.world_size,
                     "Play one rank of so many in one process, whatever launcher the program has")
        ->type_name("N")
        ->check(whole_number(1, std::int64_t{1} << 20))
        ->group("Input");
    trace_->add_option("--rank", trace.rank, "Which one [0]")->type_name("R")->check(whole_number(0))->group("Input");
    trace_->add_option("--steps", trace.steps, "End the program after so many optimizer steps [when it ends]")
        ->type_name("K")
        ->check(whole_number(1))
        ->group("Input");
    trace_
        ->add_option("--answer", trace.answers,
                     "What a read of a value that a kernel would have written gives (may be repeated);\n"
                     "WHAT is bool, float, int, compare, equal, nonzero, or a place: train.py:120=false")
        ->type_name("WHAT=VALUE")
        ->check(assignment())
        ->group("Input");
    trace_
        ->add_option("--timeout", trace.timeout,
                     "End a program that prints nothing and gets nowhere for so long; 0: never [600]")
        ->type_name("SECONDS")
        ->check(whole_number(0))
        ->group("Input");
    trace_->add_flag("--inventory", trace.inventory, "Also list what is alive at the peak (slower)")->group("Output");
    trace_->add_option("--snapshot", trace.snapshot, "Write PyTorch's memory snapshot to this file (slower)")
        ->type_name("FILE")
        ->group("Output");
  }

  template <NamedEnum E, class Choice>
  static CLI::Option* add_choice(CLI::App& command, const char* name, Choice& choice, const char* what) {
    const auto choose = [&choice](const std::string& word) { choice = *from_name<E>(word); };
    return command.add_option_function<std::string>(name, choose, what)->check(one_of(kWordsOf<E>));
  }

  void add_size(CLI::App& command, const char* name, const char* what, std::optional<Bytes>& size) {
    command
        .add_option_function<std::string>(
            name, [&size](const std::string& text) { size = *parse_size(text); }, what)
        ->type_name("SIZE")
        ->check(size_text())
        ->group("Input");
  }

  /// What comes after -- belongs to the traced program, whatever it looks like.
  void take_program(std::vector<std::string>& words) {
    if (words.empty() || words.front() != "trace") return;
    const auto end = std::ranges::find(words, "--");
    if (end == words.end()) return;
    trace_arguments_.program.assign(end + 1, words.end());
    words.erase(end, words.end());
  }

  const CLI::App& chosen() const {
    const auto commands = root_.get_subcommands();
    return commands.empty() ? root_ : *commands.front();
  }

  std::string help_name() const { return &chosen() == &root_ ? "qlora-plan" : "qlora-plan " + chosen().get_name(); }

  static UsageError unknown_command(const std::string& word) {
    const auto near = closest(word, kCommands);
    return {"unknown command '" + word + "': commands are " + join(kCommands),
            near ? "did you mean " + std::string{*near} + "?" : "", "qlora-plan"};
  }

  UsageError unexpected_words(const CLI::ExtrasError& error) const {
    const auto extras = root_.remaining(true);
    const auto option = std::ranges::find_if(extras, [](const std::string& word) { return word.starts_with('-'); });
    if (option == extras.end()) return {error.what(), "", help_name()};
    const std::string name = option->substr(0, option->find('='));
    std::vector<std::string> names;
    for (const auto* known : chosen().get_options())
      for (const auto& long_name : known->get_lnames()) names.push_back("--" + long_name);
    const std::vector<std::string_view> views{names.begin(), names.end()};
    const auto near = closest(name, views);
    return {"unknown option '" + name + "'", near ? "did you mean " + std::string{*near} + "?" : "", help_name()};
  }

  template <class A>
  A with_color(A arguments) const {
    if (color_ == "always") arguments.common.color = ColorMode::always;
    if (color_ == "never") arguments.common.color = ColorMode::never;
    return arguments;
  }

  Arguments arguments() const {
    if (*estimate_) return with_color(estimate_arguments_);
    if (*explain_) return with_color(explain_arguments_);
    if (*check_) return with_color(check_arguments_);
    if (*export_) return with_color(export_arguments_);
    if (*sparse_weights_) return with_color(sparse_weights_arguments_);
    if (*env_) return with_color(env_arguments_);
    if (*verify_) return with_color(verify_arguments_);
    if (*trace_) return with_color(trace_arguments_);
    if (*gpus_) return with_color(gpus_arguments_);
    if (*models_) return with_color(models_arguments_);
    return with_color(schema_arguments_);
  }

  CLI::App root_;
  CLI::App* estimate_ = nullptr;
  CLI::App* explain_ = nullptr;
  CLI::App* check_ = nullptr;
  CLI::App* export_ = nullptr;
  CLI::App* sparse_weights_ = nullptr;
  CLI::App* env_ = nullptr;
  CLI::App* verify_ = nullptr;
  CLI::App* trace_ = nullptr;
  CLI::App* gpus_ = nullptr;
  CLI::App* models_ = nullptr;
  CLI::App* schema_ = nullptr;
  EstimateArguments estimate_arguments_;
  ExplainArguments explain_arguments_;
  CheckArguments check_arguments_;
  ExportArguments export_arguments_;
  SparseWeightsArguments sparse_weights_arguments_;
  EnvArguments env_arguments_;
  VerifyArguments verify_arguments_;
  TraceArguments trace_arguments_;
  GpusArguments gpus_arguments_;
  ModelsArguments models_arguments_;
  SchemaArguments schema_arguments_;
  std::string color_ = "auto";
};

}  // namespace

std::variant<Arguments, Information, UsageError> parse_arguments(int argc, const char* const* argv) {
  return CommandLine{}.parse({argv + std::min(argc, 1), argv + argc});
}

}  // namespace qlp::app
