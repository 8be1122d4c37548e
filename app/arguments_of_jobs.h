// What the commands take that answer a job without running it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/common_arguments.h"
#include "base/bytes.h"
#include "base/enum_names.h"
#include "estimate/search.h"

namespace qlp::app {

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

}  // namespace qlp::app

namespace qlp {

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

}  // namespace qlp

namespace qlp::app {

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

}  // namespace qlp::app
