#include "step/sample_data.h"

#include <algorithm>

#include "tensor/random.h"

namespace qlp {

std::vector<double> sample_tokens(SampleId first, std::int64_t count, std::int64_t length, std::int64_t vocabulary) {
  constexpr std::int64_t kAlphabet = 64;  // few enough to be seen often
  const std::int64_t letters = std::min(kAlphabet, vocabulary);
  std::vector<double> tokens;
  tokens.reserve(static_cast<std::size_t>(count * length));
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t key = first.seed;
    for (const std::int64_t part : {first.step, first.micro, first.sample + i})
      key = random_key(key, static_cast<std::uint64_t>(part));
    auto token = static_cast<std::int64_t>(key % static_cast<std::uint64_t>(letters));
    for (std::int64_t j = 0; j < length; ++j) {
      tokens.push_back(static_cast<double>(token));
      token = (5 * token + 3) % letters;
    }
  }
  return tokens;
}

std::vector<double> text_of(std::vector<double> ids, std::int64_t length, Text text) {
  constexpr double kIgnored = -100;
  const auto count = static_cast<std::int64_t>(ids.size());
  for (std::int64_t i = 0; i < count && text != Text::ids; ++i) {
    const std::int64_t place = i % length;
    const auto at = static_cast<std::size_t>(i);
    if (text == Text::positions)
      ids[at] = static_cast<double>(place);
    else
      ids[at] = place + 1 < length ? ids[at + 1] : kIgnored;
  }
  return ids;
}

}  // namespace qlp
