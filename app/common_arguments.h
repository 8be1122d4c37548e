// What several commands take.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/enum_names.h"

namespace qlp::app {

enum class ColorMode : std::uint8_t { automatic, always, never };

}  // namespace qlp::app

namespace qlp {

template <>
inline constexpr std::array<EnumName<app::ColorMode>, 3> kEnumNames<app::ColorMode>{{
    {app::ColorMode::automatic, "auto"},
    {app::ColorMode::always, "always"},
    {app::ColorMode::never, "never"},
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

}  // namespace qlp::app
