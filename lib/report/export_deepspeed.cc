#include "report/export_deepspeed.h"

#include <array>
#include <concepts>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/refusal.h"
#include "plan/plan_names.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

/// Whether transformers fills this option in where it is "auto", which DeepSpeed itself does not know: there the option
/// is left out.
constexpr bool is_filled_in(std::string_view option) {
  return option != "communication_data_type" && option != "grad_accum_dtype" && option != "dtype";
}

/// Of the optimizer's own, which transformers fills in only where they stand there (HfTrainerDeepSpeedConfig,
/// trainer_config_process).
constexpr std::array<const char*, 3> kOptimizerFilledIn{"lr", "betas", "eps"};

struct DeepspeedWriter {
  Json& root;
  Json& zero;

  Json& of(std::string_view key) const { return is_at_root(key) ? root : zero; }
  template <class T, class... Range>
  void option(std::string_view key, const T& value, Range...) const {
    if constexpr (NamedEnum<T>)
      of(key)[std::string(key)] = name_of(value);
    else
      of(key)[std::string(key)] = value;
  }
  template <class T>
  void named(std::string_view key, const T& value) const {
    option(key, value);
  }
  template <class T, class... Range>
  void automatic(std::string_view key, const std::optional<T>& value, Range...) const {
    if (value)
      option(key, *value);
    else if (is_filled_in(key))
      of(key)[std::string(key)] = "auto";
  }
  template <class T, class... Range>
  void fillable(std::string_view key, const Fillable<T>& value, Range...) const {
    if (const T* given = std::get_if<T>(&value))
      option(key, *given);
    else if (std::get<Unsaid>(value) == Unsaid::automatic)
      option(key, Unsaid::automatic);
  }
  template <class Options>
  void section(std::string_view key, const Options& options) const {
    if constexpr (std::same_as<Options, ZeroOwnOptimizer>)
      if (options.type == ZeroOptimizerType::none) return;
    Json inner = Json::object();
    if constexpr (std::same_as<Options, ZeroOptimizerParams>)
      for (const char* filled_in : kOptimizerFilledIn) inner[filled_in] = "auto";
    visit_options(options, DeepspeedWriter{inner, inner});
    if constexpr (std::same_as<Options, ZeroOwnOptimizer>) leave_out_params(options.type, inner["params"]);
    of(key)[std::string(key)] = std::move(inner);
  }

 private:
  /// At which the optimizer would stop.
  static void leave_out_params(ZeroOptimizerType type, Json& params) {
    Json taken = Json::object();
    for (const auto& [name, value] : params.items())
      if (takes_param(type, name)) taken[name] = value;
    params = std::move(taken);
  }
};

}  // namespace

Result<std::string> deepspeed_config(const NamedPlan& plan) {
  const auto* options = std::get_if<Zero>(&plan.plan);
  if (!options)
    return Unexpected{Diagnostics{refusal("not-a-deepspeed-plan", plan.name + " is not a plan of DeepSpeed", "plans",
                                          "zero1, zero2 and zero3 are")}};
  Json root{{"train_batch_size", "auto"},
            {"train_micro_batch_size_per_gpu", "auto"},
            {"gradient_accumulation_steps", "auto"}};
  Json zero = Json::object();
  visit_options(*options, DeepspeedWriter{root, zero});
  root["zero_optimization"] = std::move(zero);
  return root.dump(2) + "\n";
}

}  // namespace qlp
