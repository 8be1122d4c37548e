#include "config/json_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "config/yaml_parser.h"

namespace qlp {
namespace {

constexpr int kDeepest = 200;

/// Thrown inside this file only: the first thing that is not JSON.
struct SyntaxError {
  std::string message;
  Position position;
};

class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& file) : text_(text), position_{file, 1, 1} {}

  NodePtr document() {
    skip_space();
    auto root = value(0);
    skip_space();
    if (at_ < text_.size()) fail("more text after the end of the value");
    return root;
  }

 private:
  [[noreturn]] void fail(std::string message) const { throw SyntaxError{std::move(message), position_}; }

  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }

  char next() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++position_.line;
      position_.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
      ++position_.column;
    }
    return c;
  }

  void skip_space() {
    while (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) next();
  }

  void expect(char c, const char* where) {
    if (peek() != c) fail(std::string("expected '") + c + "' " + where);
    next();
  }

  NodePtr value(int depth) {
    if (depth > kDeepest) fail("nested too deep");
    auto node = std::make_shared<TextNode>();
    node->position = position_;
    if (peek() == '{') {
      map(*node, depth);
    } else if (peek() == '[') {
      sequence(*node, depth);
    } else if (peek() == '"') {
      node->kind = NodeKind::scalar;
      node->quoted = true;
      node->text = string();
    } else {
      word(*node);
    }
    return node;
  }

  void map(TextNode& node, int depth) {
    node.kind = NodeKind::map;
    next();
    skip_space();
    if (peek() == '}') return void(next());
    while (true) {
      skip_space();
      if (peek() != '"') fail("expected a key in double quotes");
      auto key_position = position_;
      auto key = string();
      skip_space();
      expect(':', "after the key");
      skip_space();
      node.entries.push_back({std::move(key), std::move(key_position), value(depth + 1)});
      skip_space();
      if (peek() == '}') return void(next());
      expect(',', "or '}' after the value");
    }
  }

  void sequence(TextNode& node, int depth) {
    node.kind = NodeKind::sequence;
    next();
    skip_space();
    if (peek() == ']') return void(next());
    while (true) {
      skip_space();
      node.items.push_back(value(depth + 1));
      skip_space();
      if (peek() == ']') return void(next());
      expect(',', "or ']' after the value");
    }
  }

  std::uint32_t hex4() {
    std::uint32_t code = 0;
    const auto digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc{} || end != digits.data() + 4) fail("expected four hexadecimal digits after \\u");
    for (int i = 0; i < 4; ++i) next();
    return code;
  }

  static void append_utf8(std::string& text, std::uint32_t code) {
    const auto tail = [&](int shift) { text += static_cast<char>(0x80U | ((code >> shift) & 0x3FU)); };
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += static_cast<char>(0xC0U | (code >> 6));
      tail(0);
    } else if (code < 0x10000) {
      text += static_cast<char>(0xE0U | (code >> 12));
      tail(6);
      tail(0);
    } else {
      text += static_cast<char>(0xF0U | (code >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  void escape(std::string& text) {
    constexpr std::array<std::pair<char, char>, 8> kEscapes{
        {{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', '\b'}, {'f', '\f'}, {'n', '\n'}, {'r', '\r'}, {'t', '\t'}}};
    if (peek() == 'u') {
      next();
      auto code = hex4();
      if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
        next();
        next();
        const auto low = hex4();
        if (low < 0xDC00 || low > 0xDFFF) fail("half of a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
      return append_utf8(text, code);
    }
    const auto* row = std::find_if(kEscapes.begin(), kEscapes.end(), [&](const auto& e) { return e.first == peek(); });
    if (at_end() || row == kEscapes.end()) fail("unknown escape in a string");
    next();
    text += row->second;
  }

  std::string string() {
    const auto start = position_;
    next();
    std::string text;
    while (true) {
      if (at_end()) throw SyntaxError{"a string without end", start};
      if (static_cast<unsigned char>(peek()) < 0x20) fail("a line end or control character in a string");
      const char c = next();
      if (c == '"') return text;
      if (c == '\\') {
        escape(text);
      } else {
        text += c;
      }
    }
  }

  /// A number, true, false, null, Infinity, -Infinity or NaN.
  void word(TextNode& node) {
    const auto start = at_;
    while (!at_end() && std::string_view{" \t\n\r,:]}[{\""}.find(peek()) == std::string_view::npos) {
      ++at_;
      ++position_.column;
    }
    const auto text = text_.substr(start, at_ - start);
    position_.column = node.position.column;
    if (text.empty()) fail(at_end() ? "the file ends where a value should be" : "expected a value");
    if (!is_word(text) && !is_number(text)) fail("expected a value, found '" + std::string(text.substr(0, 20)) + "'");
    position_.column += static_cast<std::uint32_t>(text.size());
    node.kind = text == "null" ? NodeKind::null : NodeKind::scalar;
    if (node.kind == NodeKind::scalar) node.text = text;
  }

  static bool is_word(std::string_view text) {
    constexpr std::array<std::string_view, 6> kWords{"null", "true", "false", "Infinity", "-Infinity", "NaN"};
    return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
  }

  static bool is_number(std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    if (text.empty() || text.front() < '0' || text.front() > '9') return false;
    const auto digit_at = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
    if (text.front() == '0' && digit_at(1)) return false;
    const auto point = text.find('.');
    if (point != std::string_view::npos && !digit_at(point + 1)) return false;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error != std::errc::invalid_argument && end == text.data() + text.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Position position_;
};

}  // namespace

Result<NodePtr> parse_json(std::string_view text, const std::string& file) {
  if (auto errors = check_text(text, file); !errors.empty()) return Unexpected{std::move(errors)};
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  try {
    return JsonParser(text, file).document();
  } catch (const SyntaxError& e) {
    return Unexpected{Diagnostics{{Severity::error, "json-syntax", "not JSON: " + e.message, "", e.position, ""}}};
  }
}

}  // namespace qlp
