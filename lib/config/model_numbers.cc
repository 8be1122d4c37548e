#include "config/model_numbers.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "config/family_table.h"
#include "model/family_design.h"
#include "plan/job_names.h"

namespace qlp {
namespace {

constexpr NumberRange kScalars{1e-3, 1e9};
constexpr NumberRange kFactorRange{1e-9, 1e12};

using Member = std::optional<double> RopeScaling::*;
constexpr std::array<std::pair<std::string_view, Member>, 3> kMagnitudes{
    {{"mscale", &RopeScaling::mscale},
     {"mscale_all_dim", &RopeScaling::mscale_all_dim},
     {"attention_factor", &RopeScaling::attention_factor}}};
using Factors = std::vector<double> RopeScaling::*;
constexpr std::array<std::pair<std::string_view, Factors>, 2> kFactors{
    {{"short_factor", &RopeScaling::short_factor}, {"long_factor", &RopeScaling::long_factor}}};
constexpr std::array<std::pair<std::string_view, double RopeScaling::*>, 5> kNumbers{
    {{"factor", &RopeScaling::factor},
     {"low_freq_factor", &RopeScaling::low_freq_factor},
     {"high_freq_factor", &RopeScaling::high_freq_factor},
     {"beta_fast", &RopeScaling::beta_fast},
     {"beta_slow", &RopeScaling::beta_slow}}};

/// Whether a type of stretching reads a number of kNumbers.
bool reads(RopeStretch type, double RopeScaling::*member) {
  if (member == &RopeScaling::factor) return type != RopeStretch::none && type != RopeStretch::longrope;
  if (member == &RopeScaling::beta_fast || member == &RopeScaling::beta_slow) return type == RopeStretch::yarn;
  return type == RopeStretch::llama3;
}

/// A list of numbers, one for each frequency; `refuse(message)` where it is none.
template <class Refuse>
std::vector<double> frequency_factors(const TextNode& node, std::int64_t count, const Refuse& refuse) {
  std::vector<double> factors;
  for (const NodePtr& item : node.items) {
    const auto number = number_of(*item);
    if (!number || *number <= 0) {
      refuse("expected positive numbers");
      return {};
    }
    factors.push_back(*number);
  }
  if (node.kind == NodeKind::sequence && static_cast<std::int64_t>(factors.size()) == count)
    return std::ranges::all_of(factors, [](double factor) { return factor == 1; }) ? std::vector<double>{} : factors;
  refuse("expected a list of " + std::to_string(count) + " numbers, one for each frequency");
  return {};
}

/// Numbers are turned in pairs.
std::optional<std::string> width_fault(const ModelSpec& spec) {
  const std::int64_t width = rotary_width(spec);
  if (width >= 2 && width % 2 == 0) return std::nullopt;
  return "rotary embedding turns " + std::to_string(width) +
         " of the numbers of a head (head_dim x partial_rotary_factor): expected an even number of them";
}

std::optional<RopeStretch> stretch_of(std::string_view type) {
  if (type == "su") return RopeStretch::longrope;  // Phi3Config's old word
  for (const auto& row : kEnumNames<RopeStretch>)
    if (row.name == type) return row.value;
  return std::nullopt;
}

class FieldNumbers {
 public:
  explicit FieldNumbers(const ConfigFields& fields) : fields_(fields) {}
  /// More than 0, or at least 0.
  std::optional<double> operator()(std::string_view key, bool may_be_0 = false) const {
    const auto value = fields_.number(key);
    if (!value || *value > 0 || (may_be_0 && *value == 0)) return value;
    refuse(key, may_be_0 ? "out of range: expected at least 0" : "out of range: expected more than 0");
    return std::nullopt;
  }
  std::optional<double> within(std::string_view key, const NumberRange& range) const {
    const auto value = (*this)(key);
    if (!value || (*value >= range.least && *value <= range.most)) return value;
    refuse(key,
           "out of range: expected a number from " + exact_number(range.least) + " to " + exact_number(range.most));
    return std::nullopt;
  }
  void refuse(std::string_view key, const std::string& message) const {
    fields_.findings().error("out-of-range", fields_.place_of(key, fields_.find(key)), message);
  }

 private:
  const ConfigFields& fields_;
};

void read_scaling(const ConfigFields& rope, ModelSpec& spec) {
  const auto type = rope.text("rope_type").value_or(rope.text("type").value_or("default"));
  RopeScaling& scaling = spec.rope_scaling;
  const auto stretch = spec.rope == RopeKind::longrope ? RopeStretch::longrope : stretch_of(type);
  if (!stretch) {
    rope.findings().warning("rope-type", rope.place_of("rope_type", rope.find("rope_type")),
                            type +
                                " is no way of stretching rotary frequencies that is known: they are computed as "
                                "they are, which changes no size");
    return;
  }
  if (*stretch != RopeStretch::longrope) scaling.rope_type = *stretch;  // else the model's own says so
  const FieldNumbers numbers(rope);
  for (const auto& [key, member] : kNumbers)
    if (reads(*stretch, member))
      if (const auto value = numbers(key)) scaling.*member = *value;
  if (*stretch == RopeStretch::yarn) {
    for (const auto& [key, member] : kMagnitudes) scaling.*member = numbers(key, true);
    scaling.truncate = rope.boolean_or("truncate", true);
  }
  if (*stretch == RopeStretch::yarn || *stretch == RopeStretch::llama3)
    scaling.original_max_position_embeddings =
        rope.integer({"original_max_position_embeddings"}, 1, std::int64_t{1} << 40);
  if (*stretch != RopeStretch::longrope) return;
  scaling.attention_factor = numbers("attention_factor");
  for (const auto& [key, member] : kFactors)
    if (const auto* node = rope.find(key))
      scaling.*member = frequency_factors(*node, rotary_width(spec) / 2,
                                          [&, at = key](const std::string& message) { numbers.refuse(at, message); });
}

void read_scaling(MapReader& map, ModelSpec& spec) {
  RopeScaling& scaling = spec.rope_scaling;
  const TextNode* node = map.take("rope_scaling");
  if (!node) return;
  MapReader rope(node, map.place_of("rope_scaling"), map.findings());
  if (spec.rope == RopeKind::longrope) {
    rope.take("rope_type");  // as the model's own says
  } else {
    rope.require("rope_type", "it decides how frequencies are stretched");
    scaling.rope_type = rope.choice<RopeStretch>("rope_type").value_or(RopeStretch::none);
    if (scaling.rope_type == RopeStretch::longrope)
      rope.refuse("rope_type", "wrong-value", "longrope is said by the model's own rope_type", "");
  }
  const RopeStretch stretch = spec.rope == RopeKind::longrope ? RopeStretch::longrope : scaling.rope_type;
  for (const auto& [key, member] : kNumbers)
    if (reads(stretch, member))
      if (const auto value = rope.number(key, {1e-9, 1e9})) scaling.*member = *value;
  if (stretch == RopeStretch::yarn) {
    for (const auto& [key, member] : kMagnitudes) scaling.*member = rope.number(key, {});
    scaling.truncate = rope.boolean("truncate").value_or(true);
  }
  if (stretch == RopeStretch::yarn || stretch == RopeStretch::llama3)
    scaling.original_max_position_embeddings =
        rope.integer("original_max_position_embeddings", {1, std::int64_t{1} << 40});
  if (stretch == RopeStretch::longrope) {
    scaling.attention_factor = rope.number("attention_factor", {1e-9, 1e9});
    for (const auto& [key, member] : kFactors)
      if (const TextNode* factors = rope.take(key))
        scaling.*member = frequency_factors(
            *factors, rotary_width(spec) / 2,
            [&, name = key](const std::string& message) { rope.refuse(name, "wrong-value", message, ""); });
  }
  rope.finish();
}

std::string list_text(const std::vector<double>& numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) text += (i ? ", " : "") + exact_number(numbers[i]);
  return text + "]";
}

std::string scaling_text(const RopeScaling& scaling) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    text += (text.empty() ? "" : ", ") + std::string(key) + ": " + value;
  };
  if (scaling.rope_type != RopeStretch::none) add("rope_type", std::string(name_of(scaling.rope_type)));
  for (const auto& [key, member] : kNumbers)
    if (reads(scaling.rope_type, member)) add(key, exact_number(scaling.*member));
  for (const auto& [key, member] : kMagnitudes)
    if (scaling.*member) add(key, exact_number(*(scaling.*member)));
  if (!scaling.truncate) add("truncate", "false");
  if (scaling.original_max_position_embeddings)
    add("original_max_position_embeddings", std::to_string(*scaling.original_max_position_embeddings));
  for (const auto& [key, member] : kFactors)
    if (!(scaling.*member).empty()) add(key, list_text(scaling.*member));
  return "{" + text + "}";
}

}  // namespace

void read_model_numbers(const ConfigFields& fields, ModelSpec& spec) {
  const auto* rope = fields.find(FieldNames{"rope_parameters", "rope_scaling"});
  if (rope && rope->kind != NodeKind::map) rope = nullptr;
  const TextNode* sliding = nullptr;
  if (rope) {  // one for each kind of layers
    const ConfigFields kinds(*rope, fields.findings());
    sliding = kinds.find("sliding_attention");
    if (const auto* full = kinds.find("full_attention")) rope = full;
  }
  const ConfigFields inner(rope ? *rope : fields.config(), fields.findings());
  const FamilyRow& of_class = row_of(spec.family);
  const FieldNumbers numbers(fields);
  spec.rms_norm_eps = numbers(of_class.norm_eps_key, true).value_or(of_class.norm_eps);
  auto theta = numbers("rope_theta");
  if (!theta && rope) theta = FieldNumbers(inner)("rope_theta");
  spec.rope_theta = theta.value_or(of_class.rope_theta);
  for (const auto& [key, member, of_factor] : factors_of(spec.family))
    spec.factors.*member = numbers.within(key, kFactorRange).value_or(of_factor);
  if (spec.family == Family::gemma3_text && sliding && sliding->kind == NodeKind::map)  // where 5.0 has put it
    if (const auto local = FieldNumbers(ConfigFields(*sliding, fields.findings()))("rope_theta"))
      spec.factors.rope_local_base_freq = *local;
  if (const double of_scores = of_class.query_pre_attn_scalar; of_scores != 0) {
    const double scalar = numbers.within("query_pre_attn_scalar", kScalars).value_or(of_scores);
    if (scalar != static_cast<double>(spec.head_dim)) spec.query_pre_attn_scalar = scalar;
  }
  const bool is_said = fields.find("partial_rotary_factor") || fields.find("head_dim");
  const auto fault = width_fault(spec);
  if (fault && (is_said || !fields.findings().has_errors())) {  // else it follows from what was told
    const std::string_view key = fields.find("partial_rotary_factor") ? "partial_rotary_factor" : "head_dim";
    numbers.refuse(key, *fault);
  } else if (rope) {
    read_scaling(inner, spec);
  }
}

void read_model_numbers(MapReader& map, ModelSpec& spec) {
  const FamilyRow& of_class = row_of(spec.family);
  spec.rms_norm_eps = map.number("rms_norm_eps", {}).value_or(of_class.norm_eps);
  spec.rope_theta = map.number("rope_theta", {1, 1e12}).value_or(of_class.rope_theta);
  if (of_class.query_pre_attn_scalar != 0) spec.query_pre_attn_scalar = map.number("query_pre_attn_scalar", kScalars);
  for (const auto& [key, member, of_factor] : factors_of(spec.family))
    spec.factors.*member = map.number(key, kFactorRange).value_or(of_factor);
  const bool is_said = map.has("partial_rotary_factor") || map.has("head_dim");
  const auto fault = width_fault(spec);
  if (fault && (is_said || !map.findings().has_errors()))
    map.refuse(map.has("partial_rotary_factor") ? "partial_rotary_factor" : "head_dim", "out-of-range", *fault);
  read_scaling(map, spec);
}

std::vector<std::pair<std::string_view, std::string>> model_number_lines(const ModelSpec& spec) {
  const FamilyRow& of_class = row_of(spec.family);
  std::vector<std::pair<std::string_view, std::string>> lines;
  if (spec.rms_norm_eps != of_class.norm_eps) lines.emplace_back("rms_norm_eps", exact_number(spec.rms_norm_eps));
  if (spec.rope_theta != of_class.rope_theta) lines.emplace_back("rope_theta", exact_number(spec.rope_theta));
  if (spec.query_pre_attn_scalar)
    lines.emplace_back("query_pre_attn_scalar", exact_number(*spec.query_pre_attn_scalar));
  for (const auto& [key, member, of_factor] : factors_of(spec.family))
    if (spec.factors.*member != of_factor) lines.emplace_back(key, exact_number(spec.factors.*member));
  if (spec.rope_scaling != RopeScaling{}) lines.emplace_back("rope_scaling", scaling_text(spec.rope_scaling));
  return lines;
}

}  // namespace qlp
