#include "checkpoint/tokenizer.h"

#include <map>

#include <nlohmann/json.hpp>

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

/// The letter that stands for a byte (GPT-2's bytes_to_unicode; tokenizers' ByteLevel has the same): printable ones
/// stand for themselves, the others follow from U+0100 on.
std::vector<std::string> byte_letters() {
  constexpr unsigned kBytes = 256;
  std::vector<std::string> letters;
  unsigned next = kBytes;
  for (unsigned byte = 0; byte < kBytes; ++byte) {
    const bool prints =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
    const unsigned point = prints ? byte : next++;
    if (point < 0x80)
      letters.push_back({static_cast<char>(point)});
    else
      letters.push_back({static_cast<char>(0xC0 | point >> 6U), static_cast<char>(0x80 | (point & 0x3F))});
  }
  return letters;
}

constexpr const char* kPad = "<|pad|>";
constexpr const char* kBos = "<|bos|>";
constexpr const char* kEos = "<|eos|>";
constexpr const char* kUnknown = "<|unk|>";

/// Messages as roles and contents, so that trainers of conversations find a template.
constexpr const char* kChatTemplate =
    "{% for message in messages %}{{ '<' + message['role'] + '>' + message['content'] + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}";

class Vocabulary {
 public:
  explicit Vocabulary(std::int64_t size) : size_(size) {}

  /// At the id if that is free, else at the last free one.
  void add_special(const std::string& token, std::optional<std::int64_t> id) {
    std::int64_t at = id.value_or(-1);
    if (at < 0 || at >= size_ || tokens_.contains(at))
      for (at = size_ - 1; tokens_.contains(at);) --at;
    tokens_[at] = token;
    special_.emplace_back(at, token);
  }
  void fill(const std::vector<std::string>& letters) {
    std::int64_t id = 0;
    for (const std::string& letter : letters) {
      while (tokens_.contains(id)) ++id;
      if (id >= size_) return;
      tokens_[id] = letter;
    }
    for (id = 0; id < size_; ++id)
      if (!tokens_.contains(id)) tokens_[id] = "<|" + std::to_string(id) + "|>";
  }

  Json vocab() const {
    Json::object_t out;
    out.reserve(tokens_.size());
    for (const auto& [id, token] : tokens_) out.emplace_back(token, id);  // tokens differ: no look-up
    return out;
  }
  Json added() const {
    Json out = Json::array();
    for (const auto& [id, token] : special_)
      out.push_back({{"id", id},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
    return out;
  }

 private:
  std::int64_t size_;
  std::map<std::int64_t, std::string> tokens_;
  std::vector<std::pair<std::int64_t, std::string>> special_;
};

}  // namespace

std::vector<TextFile> minimal_tokenizer(std::int64_t vocab_size, const SpecialIds& ids, std::int64_t max_length) {
  constexpr std::int64_t kRoomForBytes = 256 + 4;
  const bool whole = vocab_size >= kRoomForBytes;
  Vocabulary vocabulary(vocab_size);
  vocabulary.add_special(kEos, ids.eos);
  if (ids.bos != ids.eos) vocabulary.add_special(kBos, ids.bos);
  const bool own_pad = !ids.pad || ids.pad != ids.eos;
  if (own_pad) vocabulary.add_special(kPad, ids.pad);
  if (!whole) vocabulary.add_special(kUnknown, std::nullopt);
  vocabulary.fill(byte_letters());

  Json model{{"type", "BPE"},
             {"dropout", nullptr},
             {"unk_token", whole ? Json(nullptr) : Json(kUnknown)},
             {"continuing_subword_prefix", nullptr},
             {"end_of_word_suffix", nullptr},
             {"fuse_unk", false},
             {"byte_fallback", false},
             {"vocab", vocabulary.vocab()},
             {"merges", Json::array()}};
  const Json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json tokenizer{{"version", "1.0"},          {"truncation", nullptr},
                       {"padding", nullptr},        {"added_tokens", vocabulary.added()},
                       {"normalizer", nullptr},     {"pre_tokenizer", byte_level},
                       {"post_processor", nullptr}, {"decoder", byte_level},
                       {"model", std::move(model)}};
  Json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
              {"eos_token", kEos},
              {"pad_token", own_pad ? kPad : kEos},
              {"bos_token", ids.bos != ids.eos ? kBos : kEos},
              {"model_max_length", max_length},
              {"model_input_names", Json::array({"input_ids", "attention_mask"})},  // most models refuse token types
              {"clean_up_tokenization_spaces", false},
              {"chat_template", kChatTemplate}};
  if (!whole) config["unk_token"] = kUnknown;
  return {{"tokenizer.json", tokenizer.dump() + "\n"}, {"tokenizer_config.json", config.dump(2) + "\n"}};
}

}  // namespace qlp
