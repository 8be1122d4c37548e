#include "config/deepspeed_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <span>

#include "base/text.h"
#include "config/deepspeed_keys.h"
#include "config/map_reader.h"
#include "plan/catalogue.h"
#include "plan/plan_names.h"

namespace qlp {
namespace {

constexpr std::string_view kAuto = "auto";

/// Optimizers of the file that are planned.
constexpr std::array kOwnOptimizers{name_of(ZeroOptimizerType::adam),    name_of(ZeroOptimizerType::adamw),
                                    name_of(ZeroOptimizerType::adagrad), name_of(ZeroOptimizerType::lion),
                                    name_of(ZeroOptimizerType::sgd),     name_of(ZeroOptimizerType::rmsprop)};

/// What transformers takes from the file, or refuses where the Trainer's own differs.
constexpr std::array<std::string_view, 3> kOfTheJob{"train_batch_size", "train_micro_batch_size_per_gpu",
                                                    "gradient_accumulation_steps"};

bool is_auto(const TextNode& node) { return node.kind == NodeKind::scalar && node.text == kAuto; }
/// Whether the key is None, and DeepSpeed takes that for "as by default".
bool is_default(std::string_view key, const TextNode& node) {
  const bool optional = key == "overlap_comm" || key == "communication_data_type" || key == "grad_accum_dtype";
  return optional && node.kind == NodeKind::null;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// The words of DtypeEnum (deepspeed/runtime/config.py, 0.18.3). communication_data_type is one of the short ones, in
/// any case.
std::optional<ZeroDType> dtype_of(std::string_view key, const std::string& text) {
  if (key == "communication_data_type") return from_name<ZeroDType>(lower(text));
  const auto is = [&](std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), text) != words.end();
  };
  if (is({"torch.float16", "float16", "half"})) return ZeroDType::fp16;
  if (is({"torch.bfloat16", "bfloat16"})) return ZeroDType::bf16;
  if (is({"torch.float32", "float32", "float"})) return ZeroDType::fp32;
  return from_name<ZeroDType>(text);
}

/// What is auto and nobody knows is an error by check_auto already.
void finish(MapReader& map, const TextNode& node, std::span<const std::string_view> does_not_matter,
            std::span<const NotSupported> not_planned) {
  for (const Entry& entry : node.entries)
    if (is_auto(*entry.value)) map.take(entry.key);
  map.finish_foreign(does_not_matter, not_planned);
}

/// Reads the options as DeepSpeed does: numbers may be written 5e8, absent ones stay as they are.
struct DeepspeedOptions {
  MapReader& root;
  MapReader& map;  ///< of the section

  MapReader& of(std::string_view key) const { return is_at_root(key) ? root : map; }
  /// Whether the file has a value that is to be read: "auto" is check_auto's.
  bool says(std::string_view key) const {
    const TextNode* node = of(key).take(key);
    return node && !is_auto(*node) && !is_default(key, *node);
  }
  void option(std::string_view key, bool& value) const {
    if (says(key)) value = of(key).boolean(key).value_or(value);
  }
  void option(std::string_view key, double& value, double least, double most) const {
    if (says(key)) value = of(key).number(key, {least, most}).value_or(value);
  }
  void option(std::string_view key, std::int64_t& value, std::int64_t least, std::int64_t most) const {
    if (!says(key)) return;
    const auto number = of(key).number(key, {static_cast<double>(least), static_cast<double>(most)});
    if (!number) return;
    if (std::trunc(*number) == *number)
      value = *number >= static_cast<double>(most) ? most : static_cast<std::int64_t>(*number);
    else
      of(key).refuse(key, "bad-value", "expected a whole number");
  }
  void option(std::string_view key, ZeroDType& value) const {
    if (!says(key)) return;
    const TextNode* node = of(key).take(key);
    const auto known = node->kind == NodeKind::scalar ? dtype_of(key, node->text) : std::nullopt;
    value = known ? *known : of(key).template choice<ZeroDType>(key).value_or(value);
  }
  /// DeepSpeed's own in small or capital letters, torch's as their classes are called (runtime/config.py).
  void option(std::string_view key, ZeroOptimizerType& value) const {
    if (!says(key)) return;
    const TextNode* node = of(key).take(key);
    const std::string given = node->kind == NodeKind::scalar ? node->text : "", word = lower(given);
    for (const NotSupported& other : kOptimizersNotPlanned)
      if (word == other.word) return of(key).refuse(key, "not-supported", std::string(other.reason));
    for (const std::string& name : {given, word})
      if (std::ranges::find(kOwnOptimizers, name) != kOwnOptimizers.end()) {
        value = *from_name<ZeroOptimizerType>(name);
        return;
      }
    of(key).word(key, kOwnOptimizers);  // which says so
  }
  template <NamedEnum E>
  void option(std::string_view key, E& value) const {
    if (says(key)) value = of(key).template choice<E>(key).value_or(value);
  }
  template <class T, class... Range>
  void automatic(std::string_view key, std::optional<T>& value, Range... range) const {
    const TextNode* node = of(key).take(key);
    if (!node) return;
    if (!says(key)) return value.reset();
    T given = value.value_or(T{});
    option(key, given, range...);
    value = given;
  }
  template <class T, class... Range>
  void fillable(std::string_view key, Fillable<T>& value, Range... range) const {
    if (of(key).take(key) == nullptr) value = Unsaid::left_out;
    if (!says(key)) return;
    T given{};
    option(key, given, range...);
    value = given;
  }
  /// accelerate makes the section bf16 or fp16 of its mixed precision where there is none (set_mixed_precision).
  template <class Options>
  void section(std::string_view key, Options& options) const {
    const TextNode* node = of(key).take(key);
    if (!node || is_auto(*node) || (node->kind == NodeKind::null && key.starts_with("offload_"))) return;
    MapReader inner(node, of(key).place_of(key), map.findings());
    // transformers takes any such section for an optimizer that accelerate is to make.
    if constexpr (std::same_as<Options, ZeroOwnOptimizer>) inner.require("type", join(kOwnOptimizers));
    visit_options(options, DeepspeedOptions{inner, inner});
    if constexpr (std::same_as<Options, ZeroOwnOptimizer>) check_params(inner.take("params"), options.type);
    finish(inner, *node, kWithoutMemory<Options>, kNotPlanned<Options>);
  }
  template <class T>
  void named(std::string_view, const T&) const {}

 private:
  /// Those of other optimizers, "auto" or not.
  void check_params(const TextNode* params, ZeroOptimizerType type) const {
    if (params == nullptr) return;
    for (const Entry& entry : params->entries)
      if (!takes_param(type, entry.key))
        map.findings().error("bad-value", {"optimizer.params." + entry.key, entry.key_position},
                             std::string(name_of(type)) + " takes no such parameter: 'got an unexpected keyword " +
                                 "argument '" + entry.key + "''",
                             "leave it out");
  }
};

/// Without which the file, or its section, is none.
constexpr std::array<std::string_view, 2> kNeeded{"optimizer.type", "zero_optimization"};

/// accelerate stops at every "auto" that neither it nor the Trainer fills in (utils/dataclasses.py,
/// deepspeed_config_process).
void check_auto(const TextNode& map, const std::string& path, Findings& findings) {
  for (const Entry& entry : map.entries) {
    const std::string key = join_path(path, entry.key);
    if (entry.value->kind == NodeKind::map) check_auto(*entry.value, key, findings);
    if (is_auto(*entry.value) && std::ranges::find(kFilledIn, key) == kFilledIn.end())
      findings.error("bad-value", {key, entry.value->position},
                     "nobody fills this in where it is auto: accelerate asks to specify it",
                     std::ranges::find(kNeeded, key) == kNeeded.end() ? "leave it out" : "");
  }
}

}  // namespace

std::optional<NamedPlan> read_deepspeed(const TextNode& root, const std::string& file, Findings& findings) {
  MapReader map(&root, {"", {file, root.position.line, root.position.column}}, findings);
  check_auto(root, "", findings);
  const TextNode* section = map.take("zero_optimization");
  if (section && is_auto(*section)) return std::nullopt;
  MapReader zero(section, map.place_of("zero_optimization"), findings);
  zero.require("stage", "1, 2 or 3");
  const TextNode* said = zero.take("stage");
  const auto stage = said && is_auto(*said) ? std::optional<std::int64_t>(2) : zero.integer("stage", {0, 3});
  if (!stage) return std::nullopt;
  if (*stage == 0) {
    zero.refuse("stage", "not-supported", "stage 0 shards nothing: DeepSpeed then runs like DDP, which is not planned");
    return std::nullopt;
  }
  auto plan = *find_plan("zero" + std::to_string(*stage));
  if (*stage != 3)
    for (const std::string_view key : kStage3Keys) zero.take(key);
  visit_options(std::get<Zero>(plan.plan), DeepspeedOptions{map, zero});
  Zero& options = std::get<Zero>(plan.plan);
  if (options.optimizer.type != ZeroOptimizerType::none && map.take("zero_allow_untested_optimizer") == nullptr)
    options.zero_allow_untested_optimizer = false;
  finish(zero, *section, kWithoutMemory<Zero>, kNotPlanned<Zero>);
  finish(map, root, kDeepspeedSaidElsewhere, kDeepspeedNotPlanned);
  for (const std::string_view key : kOfTheJob)
    if (const TextNode* node = find(root, key); node && !is_auto(*node))
      findings.warning("said-in-the-job", {std::string(key), node->position},
                       "the file's own " + std::string(key) + " is not planned: the job's training section is",
                       "set it to auto, or leave it out");
  return plan;
}

}  // namespace qlp
