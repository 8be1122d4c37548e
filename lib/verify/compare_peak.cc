#include "verify/compare_peak.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace qlp {
namespace {

/// The blocks of one size on one side.
struct Blocks {
  std::int64_t count = 0;
  std::string example;  ///< of those that weigh most
  std::int64_t example_count = 0;
};

std::string words(const InventoryItem& item) {
  std::string out;
  for (const std::string* part : {&item.op, &item.tensor, &item.module})
    if (!part->empty()) out += (out.empty() ? "" : " ") + *part;
  return out + " (" + std::string(name_of(item.category)) + ")";
}

std::map<Bytes, Blocks> by_size(const std::vector<InventoryItem>& items) {
  std::map<Bytes, Blocks> out;
  for (const InventoryItem& item : items) {
    const std::uint64_t count = std::max<std::uint64_t>(item.count, 1);
    Blocks& blocks = out[Bytes{item.allocated.count() / count}];
    blocks.count += static_cast<std::int64_t>(count);
    if (static_cast<std::int64_t>(count) <= blocks.example_count) continue;
    blocks.example = words(item), blocks.example_count = static_cast<std::int64_t>(count);
  }
  return out;
}

std::vector<ComparedCategory> by_category(const std::vector<InventoryItem>& measured,
                                          const std::vector<InventoryItem>& predicted) {
  std::vector<ComparedCategory> out;
  for (std::size_t i = 0; i < kCategoryNames.size(); ++i) out.push_back({.category = static_cast<Category>(i)});
  for (const auto& item : measured) out[static_cast<std::size_t>(item.category)].measured += item.allocated;
  for (const auto& item : predicted) out[static_cast<std::size_t>(item.category)].predicted += item.allocated;
  std::erase_if(out, [](const ComparedCategory& c) { return c.measured == Bytes{} && c.predicted == Bytes{}; });
  return out;
}

std::uint64_t weight(const TensorDifference& d) {
  return d.size.count() * static_cast<std::uint64_t>(std::llabs(d.measured - d.predicted));
}

}  // namespace

ComparedPeak compare_peak(std::string phase, const std::vector<InventoryItem>& measured,
                          const std::vector<InventoryItem>& predicted, std::size_t most) {
  ComparedPeak out{.phase = std::move(phase), .categories = by_category(measured, predicted)};
  const auto ours = by_size(measured), theirs = by_size(predicted);
  std::map<Bytes, TensorDifference> sizes;
  for (const auto& [size, blocks] : ours)
    sizes[size] = {.size = size, .measured = blocks.count, .measured_as = blocks.example};
  for (const auto& [size, blocks] : theirs) {
    TensorDifference& difference = sizes[size];
    difference.size = size, difference.predicted = blocks.count, difference.predicted_as = blocks.example;
  }
  for (auto& [size, difference] : sizes)
    if (difference.measured != difference.predicted) out.tensors.push_back(std::move(difference));
  std::ranges::stable_sort(out.tensors, std::ranges::greater{}, weight);
  if (out.tensors.size() > most) out.tensors.resize(most);
  return out;
}

}  // namespace qlp
