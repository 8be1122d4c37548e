// Made-up text: sequences in which a token says which one follows, so that there is something to learn.
#pragma once

#include <cstdint>
#include <vector>

namespace qlp {

/// What tells one sequence from another, whatever rank it is on.
struct SampleId {
  std::uint64_t seed = 0;
  std::int64_t step = 0, micro = 0;  ///< of the run; within the step
  std::int64_t sample = 0;           ///< among those of all ranks in that micro step
};

/// `count` sequences of `length` tokens each, one after another, from sample `first.sample` on.
std::vector<double> sample_tokens(SampleId first, std::int64_t count, std::int64_t length, std::int64_t vocabulary);

/// What a batch has for each place of a sequence.
enum class Text : std::uint8_t {
  ids,             ///< labels too: they are shifted in the loss
  shifted_labels,  ///< the next token; none at the end
  positions,
};

/// `ids`, sequences of `length`, as that.
std::vector<double> text_of(std::vector<double> ids, std::int64_t length, Text text);

}  // namespace qlp
