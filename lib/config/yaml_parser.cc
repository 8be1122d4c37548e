#include "config/yaml_parser.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/text.h"

namespace qlp {
namespace {

/// A job file is a page; what is longer is something else, and the parser is not to be kept busy with it.
constexpr std::size_t kLargestFile = 64U << 10;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The types of YAML's core schema; all others are somebody's own.
constexpr std::array<std::string_view, 9> kTags{
    "",
    "?",
    "!",
    "tag:yaml.org,2002:str",
    "tag:yaml.org,2002:int",
    "tag:yaml.org,2002:float",
    "tag:yaml.org,2002:bool",
    "tag:yaml.org,2002:seq",
    "tag:yaml.org,2002:map",
};

Diagnostic error_at(std::string code, std::string message, Position position) {
  return {Severity::error, std::move(code), std::move(message), "", std::move(position), ""};
}

/// The parser's marks (lines and bytes, from 0) as places in the file (lines and letters, from 1).
class Places {
 public:
  Places(std::string_view text, const std::string& file) : text_(text), file_(file) {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') line_starts_.push_back(i + 1);
  }

  std::size_t offset(const YAML::Mark& mark) const {
    const auto line = std::min(static_cast<std::size_t>(std::max(mark.line, 0)), line_starts_.size() - 1);
    return std::min(line_starts_[line] + static_cast<std::size_t>(std::max(mark.column, 0)), text_.size());
  }

  Position operator()(const YAML::Mark& mark) const {
    auto line_start = mark;
    line_start.column = 0;
    const auto start = offset(line_start);
    const auto before = text_.substr(start, offset(mark) - start);
    const auto letters = std::count_if(before.begin(), before.end(),
                                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
    return {file_, static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(letters + 1)};
  }

  /// Whether the line is indented with tabs, which YAML does not take.
  bool has_tab_before(const YAML::Mark& mark) const {
    auto line_start = mark;
    line_start.column = 0;
    const auto line = text_.substr(offset(line_start));
    return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size())).find('\t') != std::string_view::npos;
  }

  /// Whether the quoted text that begins here also ends: the parser takes the end of the file for a quote.
  bool quote_ends(const YAML::Mark& mark) const {
    auto at = offset(mark);
    const char quote = at < text_.size() ? text_[at] : '\0';
    if (quote != '"' && quote != '\'') return true;
    for (++at; at < text_.size(); ++at) {
      if (quote == '"' && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == quote) {
        return true;
      }
    }
    return false;
  }

 private:
  std::string_view text_;
  std::string file_;
  std::vector<std::size_t> line_starts_{0};
};

/// Builds the tree from the parser's events. (YAML::Node hides duplicate keys and where null values are.)
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const Places& places) : place_(places) {}

  NodePtr root() const { return root_; }
  Diagnostics take_errors() { return std::move(errors_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    remember(anchor, add(make(NodeKind::null, mark)));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto node = make(NodeKind::scalar, mark);
    node->text = value;
    node->quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    check_tag(tag, mark);
    if (!place_.quote_ends(mark)) errors_.push_back(error_at("yaml-syntax", "a quote without end", place_(mark)));
    remember(anchor, add(std::move(node)));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto target = anchors_.find(anchor);
    if (target != anchors_.end()) {
      add(target->second);
      return;
    }
    errors_.push_back(error_at("yaml-syntax", "an alias inside of what it stands for", place_(mark)));
    add(make(NodeKind::null, mark));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(NodeKind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(NodeKind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    std::shared_ptr<TextNode> node;
    YAML::anchor_t anchor;
    bool has_key = false;  ///< of a map: the key of the next value was read
  };

  std::shared_ptr<TextNode> make(NodeKind kind, const YAML::Mark& mark) const {
    auto node = std::make_shared<TextNode>();
    node->kind = kind;
    node->position = place_(mark);
    return node;
  }

  void check_tag(const std::string& tag, const YAML::Mark& mark) {
    if (std::find(kTags.begin(), kTags.end(), tag) != kTags.end()) return;
    errors_.push_back(error_at("yaml-syntax", "the tag " + tag + " has no meaning here", place_(mark)));
  }

  void open(NodeKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    check_tag(tag, mark);
    open_.push_back({make(kind, mark), anchor});
  }

  void close() {
    const auto done = std::move(open_.back());
    open_.pop_back();
    remember(done.anchor, add(done.node));
  }

  void remember(YAML::anchor_t anchor, NodePtr node) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = std::move(node);
  }

  /// Puts a finished node where the document is: as the root, an item, a key or a value.
  NodePtr add(NodePtr node) {
    if (open_.empty()) return root_ = std::move(node);
    auto& parent = open_.back();
    if (parent.node->kind == NodeKind::sequence) {
      parent.node->items.push_back(node);
    } else if (!parent.has_key) {
      if (node->kind != NodeKind::scalar)
        errors_.push_back(error_at("yaml-syntax", "expected a key, found " + describe(*node), node->position));
      parent.node->entries.push_back({node->text, node->position, nullptr});
      parent.has_key = true;
    } else {
      parent.node->entries.back().value = node;
      parent.has_key = false;
    }
    return node;
  }

  const Places& place_;
  NodePtr root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, NodePtr> anchors_;  ///< finished ones only
  Diagnostics errors_;
};

}  // namespace

Diagnostics check_text(std::string_view text, const std::string& file) {
  Position position{file, 1, 1};
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    const bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
    const auto length = control ? 0 : letter_length(text.substr(at));
    if (length == 0) return {error_at("not-text", "not a text file: a byte that is not UTF-8 text", position)};
    at += length;
    ++position.column;
    if (c == '\n') {
      ++position.line;
      position.column = 1;
    }
  }
  return {};
}

Result<NodePtr> parse_yaml(std::string_view text, const std::string& file) {
  if (text.size() > kLargestFile)
    return Unexpected{Diagnostics{error_at("file-too-large", "larger than 64 KiB: not a job file", {file, 0, 0})}};
  if (auto errors = check_text(text, file); !errors.empty()) return Unexpected{std::move(errors)};

  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const Places places(text, file);
  TreeBuilder tree(places);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    const bool any = parser.HandleNextDocument(tree);
    if (!any || !tree.root() || tree.root()->kind == NodeKind::null)
      return Unexpected{Diagnostics{error_at("empty-file", "nothing in the file", {file, 1, 1})}};
    TreeBuilder rest(places);
    if (parser.HandleNextDocument(rest) && rest.root())
      return Unexpected{
          Diagnostics{error_at("yaml-syntax", "a second document: one file holds one", rest.root()->position)}};
  } catch (const YAML::DeepRecursion& e) {
    return Unexpected{Diagnostics{error_at("yaml-syntax", "not a job: nested too deep", places(e.mark))}};
  } catch (const YAML::Exception& e) {
    Diagnostic error = error_at("yaml-syntax", "not YAML: " + e.msg, places(e.mark));
    if (places.has_tab_before(e.mark)) error.hint = "the line begins with a tab: indent with spaces";
    return Unexpected{Diagnostics{std::move(error)}};
  }
  if (auto errors = tree.take_errors(); !errors.empty()) return Unexpected{std::move(errors)};
  return tree.root();
}

}  // namespace qlp
