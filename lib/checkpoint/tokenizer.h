// A tokenizer for a checkpoint that has none: every byte is a token, and the vocabulary has the model's size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace qlp {

struct TextFile {
  std::string name;
  std::string text;
};

/// Ids that the config gives to special tokens.
struct SpecialIds {
  std::optional<std::int64_t> bos, eos, pad;
};

/// tokenizer.json and tokenizer_config.json for AutoTokenizer. Special tokens have the ids of the config as far as
/// they lie in the vocabulary; eos and pad are always there, at its end where the config names none. A vocabulary with
/// less room than 256 bytes reads what it cannot hold as its unknown token. `vocab_size` is at least 4.
std::vector<TextFile> minimal_tokenizer(std::int64_t vocab_size, const SpecialIds& ids, std::int64_t max_length);

}  // namespace qlp
