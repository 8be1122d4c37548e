// What the commands take that stand beside the jobs: checkpoints, environments, what the program knows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "app/common_arguments.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/enum_names.h"

namespace qlp::app {

enum class CheckpointFormat : std::uint8_t { plain, bnb_4bit, gptq, awq, mxfp4 };

enum class EnvAction : std::uint8_t { create, list };

}  // namespace qlp::app

namespace qlp {

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

struct GpusArguments {
  CommonArguments common;
};

struct ModelsArguments {
  CommonArguments common;
};

struct SchemaArguments {
  CommonArguments common;
};

}  // namespace qlp::app
