#include "config/plan_options.h"

#include <array>
#include <type_traits>

namespace qlp {
namespace {

constexpr std::string_view kNoOffload = "offload to the host is not planned yet";

/// Options of a runtime that cannot be planned here, and why.
template <class Plan>
inline constexpr std::array<NotSupported, 0> kNotPlanned{};
template <>
inline constexpr std::array<NotSupported, 3> kNotPlanned<Ddp>{{
    {"find_unused_parameters", "it changes no memory: leave it out"},
    {"static_graph", "not planned yet"},
    {"broadcast_buffers", "it changes no memory: leave it out"},
}};
template <>
inline constexpr std::array<NotSupported, 4> kNotPlanned<Fsdp1>{{
    {"cpu_offload", kNoOffload},
    {"backward_prefetch", "BACKWARD_PRE is planned, accelerate's default"},
    {"forward_prefetch", "off is planned, accelerate's default"},
    {"auto_wrap_policy", "every decoder layer is wrapped, as accelerate is told to"},
}};
template <>
inline constexpr std::array<NotSupported, 3> kNotPlanned<Fsdp2>{{
    {"cpu_offload", kNoOffload},
    {"offload_policy", kNoOffload},
    {"use_orig_params", "it is an option of FSDP1"},
}};

struct OptionReader {
  MapReader& map;

  void option(std::string_view key, bool& value) const { value = map.boolean_or(key, value); }
  void option(std::string_view key, std::int64_t& value, std::int64_t least, std::int64_t most) const {
    value = map.integer_or(key, {least, most}, value);
  }
  template <NamedEnum E>
  void option(std::string_view key, E& value) const {
    value = map.choice_or(key, value);
  }
  template <class T>
  void named(std::string_view key, const T&) const {
    if (map.take(key)) map.refuse(key, "not-supported", "the name of the plan says it", "leave it out");
  }
};

}  // namespace

void read_plan_options(MapReader& map, ShardingPlan& plan) {
  std::visit(
      [&]<class Plan>(Plan& options) {
        visit_options(options, OptionReader{map});
        map.finish(kNotPlanned<Plan>);
      },
      plan);
}

}  // namespace qlp
