#include "config/checkpoint_check.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>

#include "base/text.h"
#include "config/findings.h"
#include "config/json_parser.h"
#include "model/parameter_count.h"

namespace qlp {
namespace {

constexpr std::uint64_t kLargestHeader = 100'000'000;  ///< safetensors refuses longer ones (safetensors/src/tensor.rs)
constexpr std::string_view kIndex = "model.safetensors.index.json";
/// Old Llama checkpoints carry the rotary frequencies of every layer, which are no parameters.
constexpr std::string_view kRotaryBuffer = "rotary_emb.inv_freq";

std::string in(const std::string& directory, std::string_view name) {
  return (std::filesystem::path(directory) / name).lexically_normal().string();
}

/// The header of a safetensors file: eight bytes of length, then JSON.
Result<NodePtr> read_header(const std::string& path, const FileReader& files) {
  const auto broken = [&](const std::string& why) {
    return Unexpected{Diagnostics{{Severity::warning, "safetensors-header", path + ": " + why, "", {path, 0, 0}, ""}}};
  };
  constexpr std::size_t kLengthBytes = 8;
  const auto start = files.read(path, kLengthBytes);
  if (!start) return broken(start.error());
  if (start->size() < kLengthBytes) return broken("too short for a safetensors file");
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>((*start)[i]);
  if (length > kLargestHeader) return broken("not a safetensors file");
  const auto head = files.read(path, kLengthBytes + length);
  if (!head || head->size() < kLengthBytes + length) return broken("the header is cut short");
  return parse_json(std::string_view(*head).substr(kLengthBytes), path);
}

/// Elements of all parameters in a header; none where a shape is not one.
std::optional<std::uint64_t> count_in(const TextNode& header) {
  std::uint64_t total = 0;
  for (const auto& tensor : header.entries) {
    if (tensor.key == "__metadata__" || tensor.key.ends_with(kRotaryBuffer)) continue;
    const auto* shape = find(*tensor.value, "shape");
    if (!shape || shape->kind != NodeKind::sequence) return std::nullopt;
    std::uint64_t elements = 1;
    for (const auto& dim : shape->items) {
      const auto value = integer_of(*dim);
      if (!value || *value < 0 || __builtin_mul_overflow(elements, static_cast<std::uint64_t>(*value), &elements))
        return std::nullopt;
    }
    if (__builtin_add_overflow(total, elements, &total)) return std::nullopt;
  }
  return total;
}

struct Count {
  std::uint64_t parameters;
  std::string source;
};

/// Counted from total_size, which is in bytes: right where all tensors have the checkpoint's dtype.
std::optional<Count> count_in_index(const TextNode& index, const std::string& path, const ModelSpec& spec) {
  const auto* metadata = find(index, "metadata");
  const auto* total_size = metadata ? find(*metadata, "total_size") : nullptr;
  const auto bytes = total_size ? number_of(*total_size) : Unexpected{std::string()};
  if (!bytes || *bytes < 0 || *bytes > 1e18 || !spec.checkpoint_dtype) return std::nullopt;
  auto parameters = static_cast<std::uint64_t>(*bytes) / size_of(*spec.checkpoint_dtype);
  const auto* map = find(index, "weight_map");
  const auto buffers = map ? std::count_if(map->entries.begin(), map->entries.end(),
                                           [](const Entry& e) { return e.key.ends_with(kRotaryBuffer); })
                           : 0;
  const auto buffered = static_cast<std::uint64_t>(buffers * (spec.head_dim / 2));
  parameters -= std::min(parameters, buffered);
  return Count{parameters, "total_size of " + path};
}

/// The safetensors files that make up the checkpoint: those of the index, or all there are.
std::set<std::string> shards_of(const TextNode* index, const std::vector<std::string>& names) {
  std::set<std::string> shards;
  if (const auto* map = index ? find(*index, "weight_map") : nullptr) {
    for (const auto& entry : map->entries) shards.insert(entry.value->text);
  } else {
    for (const auto& name : names)
      if (name.ends_with(".safetensors")) shards.insert(name);
  }
  return shards;
}

std::optional<Count> count_checkpoint(const std::string& directory, const ModelSpec& spec, const FileReader& files,
                                      Findings& findings) {
  const auto names = files.list(directory);
  const auto there = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  NodePtr index;
  if (there(kIndex)) {
    const auto text = read_text(in(directory, kIndex), files);
    auto parsed = text ? parse_json(*text, in(directory, kIndex)) : Result<NodePtr>(Unexpected{text.error()});
    if (parsed) index = *parsed;
    if (!parsed)
      findings.warning("checkpoint-index", {"", {in(directory, kIndex), 0, 0}}, parsed.error().front().message);
  }
  const auto shards = shards_of(index.get(), names);
  if (shards.empty() || !std::all_of(shards.begin(), shards.end(), there))
    return index ? count_in_index(*index, in(directory, kIndex), spec) : std::nullopt;
  Count count{0, "the safetensors headers in " + directory};
  for (const auto& shard : shards) {
    const auto header = read_header(in(directory, shard), files);
    const auto held = header ? count_in(**header) : std::nullopt;
    if (!header)
      findings.warning("safetensors-header", {"", {in(directory, shard), 0, 0}}, header.error().front().message);
    if (!held) return std::nullopt;
    count.parameters += *held;
  }
  return count;
}

}  // namespace

Diagnostics check_checkpoint(const std::string& directory, const ModelSpec& spec, bool quantized,
                             const FileReader& files) {
  Findings findings;
  if (quantized) return {};
  const auto held = count_checkpoint(directory, spec, files, findings);
  if (!held) return findings.take();
  const auto expected = parameter_count(spec);
  const auto head = static_cast<std::uint64_t>(spec.vocab_size * spec.hidden_size);
  const KeyPlace place{"", {directory, 0, 0}};
  if (held->parameters == expected) {
    findings.note("parameter-count", place,
                  "the shapes hold " + with_commas(expected) + " parameters, as " + held->source);
  } else if (spec.tie_word_embeddings && held->parameters == expected + head) {
    findings.note("parameter-count", place,
                  "the checkpoint has a second copy of the tied embedding; it is loaded once: " +
                      with_commas(expected) + " parameters");
  } else {
    findings.warning("parameter-count", place,
                     "the shapes hold " + with_commas(expected) + " parameters, but " + held->source + " holds " +
                         with_commas(held->parameters),
                     "is the config.json the one of these weights?");
  }
  return findings.take();
}

}  // namespace qlp
