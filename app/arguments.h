// What the command line asks for, as values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/enum_names.h"
#include "estimate/search.h"
#include "estimate/verification.h"

namespace qlp::app {

enum class ColorMode : std::uint8_t { automatic, always, never };
enum class ExportFormat : std::uint8_t {
  torch,
  torch_json,
  accelerate,
  deepspeed,
  runner,
  job,
  slurm,
  kubernetes,
  htcondor
};
enum class CheckpointFormat : std::uint8_t { plain, bnb_4bit, gptq, awq, mxfp4 };
enum class EnvAction : std::uint8_t { create, list };

}  // namespace qlp::app

namespace qlp {

template <>
inline constexpr std::array<EnumName<app::ColorMode>, 3> kEnumNames<app::ColorMode>{{
    {app::ColorMode::automatic, "auto"},
    {app::ColorMode::always, "always"},
    {app::ColorMode::never, "never"},
}};
template <>
inline constexpr std::array<EnumName<app::ExportFormat>, 8> kEnumNames<app::ExportFormat>{{
    {app::ExportFormat::torch, "torch"},
    {app::ExportFormat::accelerate, "accelerate"},
    {app::ExportFormat::deepspeed, "deepspeed"},
    {app::ExportFormat::runner, "runner"},
    {app::ExportFormat::job, "job"},
    {app::ExportFormat::slurm, "slurm"},
    {app::ExportFormat::kubernetes, "kubernetes"},
    {app::ExportFormat::htcondor, "htcondor"},
}};
template <>
inline constexpr std::array<EnumName<app::CheckpointFormat>, 5> kEnumNames<app::CheckpointFormat>{{
    {app::CheckpointFormat::plain, "plain"},
    {app::CheckpointFormat::bnb_4bit, "bnb-4bit"},
    {app::CheckpointFormat::gptq, "gptq"},
    {app::CheckpointFormat::awq, "awq"},
    {app::CheckpointFormat::mxfp4, "mxfp4"},
}};
template <>
inline constexpr std::array<EnumName<app::EnvAction>, 2> kEnumNames<app::EnvAction>{{
    {app::EnvAction::create, "create"},
    {app::EnvAction::list, "list"},
}};

}  // namespace qlp

namespace qlp::app {

/// Options that every command takes.
struct CommonArguments {
  std::optional<std::string> json;  ///< the file to write, "-" for stdout
  bool quiet = false;
  bool verbose = false;
  ColorMode color = ColorMode::automatic;
};

/// Options of the commands that answer a job.
struct JobArguments {
  std::string file;
  std::optional<std::int64_t> gpus;
  std::optional<std::string> gpu;
  std::optional<std::string> model;
  std::optional<std::string> launch;  ///< a file of accelerate or DeepSpeed
  std::optional<std::string> plan;
  std::optional<std::string> machine;  ///< a machine profile
};

struct EstimateArguments {
  CommonArguments common;
  JobArguments job;
  bool required = false;
  bool mistakes = false;
  bool stamp = false;
};

struct SearchArguments {
  CommonArguments common;
  JobArguments job;
  SearchKey key = SearchKey::micro_batch_size;
  std::optional<SearchAlong> along;
  std::optional<std::int64_t> most;
  bool keeps_cache = false;
};

struct ExplainArguments {
  CommonArguments common;
  JobArguments job;
  std::optional<std::string> phase;
  std::optional<std::int64_t> rank;
  std::int64_t top = 40;
  std::optional<std::string> events;
};

struct CheckArguments {
  CommonArguments common;
  JobArguments job;
  std::optional<Bytes> budget;
  std::vector<std::string> ignored;
  bool strict = false;
};

struct ExportArguments {
  CommonArguments common;
  JobArguments job;
  ExportFormat format = ExportFormat::torch;
  std::optional<std::string> output;
};

struct TraceArguments {
  CommonArguments common;
  std::optional<std::string> gpu;
  std::optional<Bytes> memory;
  std::optional<double> margin;            ///< percent
  std::optional<std::int64_t> gpus;        ///< that the program sees
  std::optional<std::int64_t> world_size;  ///< of the one rank that is played
  std::int64_t rank = 0;
  std::int64_t steps = 0;            ///< 0: to the program's end
  std::int64_t timeout = 600;        ///< seconds without a sign of life
  std::vector<std::string> answers;  ///< WHAT=VALUE
  bool inventory = false;
  std::optional<std::string> snapshot;
  std::vector<std::string> program;  ///< and its arguments
};

struct SparseWeightsArguments {
  CommonArguments common;
  std::string source;     ///< a config.json, its folder, a job file, or a model's name
  std::string directory;  ///< to write
  std::optional<DType> dtype;
  std::optional<CheckpointFormat> format;
  std::optional<std::int64_t> group_size;
  std::optional<std::int64_t> layers;
  std::optional<Bytes> shard_size;
  std::optional<std::string> python;  ///< the interpreter whose transformers names the tensors
};

struct EnvArguments {
  CommonArguments common;
  EnvAction action = EnvAction::list;
  std::optional<std::string> stack;  ///< a name, or a job file
  std::optional<std::string> directory;
  std::string python = "python3";
};

struct VerifyArguments {
  CommonArguments common;
  JobArguments job;
  VerifyDevice device = VerifyDevice::cuda;
  VerifyRunner runner = VerifyRunner::own;
  std::optional<std::string> python;  ///< the interpreter of runner torch
  std::int64_t steps = 2;
  std::optional<std::int64_t> rank;  ///< of --world-size: it is played alone
  std::optional<Tolerance> tolerance;
  std::int64_t timeout = 60;  ///< seconds
  std::optional<std::string> calibrate;
  std::optional<std::string> rendezvous;
  bool stamp = false;
  std::optional<std::int64_t> as_rank;  ///< this process is that rank, started by a launcher
};

struct GpusArguments {
  CommonArguments common;
};

struct ModelsArguments {
  CommonArguments common;
};

struct SchemaArguments {
  CommonArguments common;
};

/// In the order of the help.
using Arguments =
    std::variant<EstimateArguments, SearchArguments, ExplainArguments, CheckArguments, ExportArguments, VerifyArguments,
                 TraceArguments, SparseWeightsArguments, EnvArguments, GpusArguments, ModelsArguments, SchemaArguments>;

/// Help or the version was asked for: text for stdout.
struct Information {
  std::string text;
};

/// The command line makes no sense: sentences for stderr.
struct UsageError {
  std::vector<std::string> mistakes;
  std::string help;  ///< the command whose --help tells more: "qlora-plan estimate"
};

std::variant<Arguments, Information, UsageError> parse_arguments(int argc, const char* const* argv);

}  // namespace qlp::app
