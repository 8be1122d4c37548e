// A file of another trainer on its way to a job: what it says is asked for by its own keys, and said in ours.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/file_reader.h"
#include "config/job_tree.h"
#include "config/map_reader.h"
#include "plan/stack_versions.h"

namespace qlp {

/// What beats the file: the command line, or the job file that names it.
struct ForeignContext {
  const TextNode& overrides;  ///< a job file's sections
  const FileReader& files;
  StackVersions stack;
};

class ForeignFile {
 public:
  /// `root` is a map without nulls.
  ForeignFile(std::string_view tool, const TextNode& root, const ForeignContext& context, Findings& findings);

  MapReader& map() { return map_; }
  JobTree& job() { return job_; }
  const ForeignContext& context() const { return context_; }
  bool has(std::string_view key) const { return map_.has(key); }
  /// A switch of the file; off where it is absent.
  bool is_on(std::string_view key) { return map_.boolean(key).value_or(false); }
  /// Whether what beats the file says this itself.
  bool is_overridden(std::string_view section, std::string_view key) const;

  /// The value of `key`, as it is, under ours.
  void copy(std::string_view key, std::string_view section, std::string_view ours);
  /// The same; where the file has it not, the tool's own default, which is noted.
  void copy_or(std::string_view key, std::string_view section, std::string_view ours, std::string_view fallback);
  /// Our word for what `key` says, or for what the tool does where it is absent.
  void say(std::string_view key, std::string_view section, std::string_view ours, std::string_view word);
  /// The same of a default of the tool, which is noted.
  void by_default(std::string_view key, std::string_view section, std::string_view ours, std::string_view word);
  /// The model under `key`: a folder or file beside this one, or a name of the Hub that the catalogue knows.
  void name_model(std::string_view key);
  /// A list under ours, said by `key`.
  void say_list(std::string_view key, std::string_view section, std::string_view ours,
                const std::vector<std::string>& words);
  /// A text of names with commas between, as a list.
  void copy_list(std::string_view key, std::string_view section, std::string_view ours);

  /// What `key` says, or `fallback` where it is absent. Another word than those `planned` is refused, and the first of
  /// them stands for it, so that what belongs to it is read all the same.
  std::string planned_word(std::string_view key, std::string_view fallback,
                           std::initializer_list<std::string_view> planned);
  void refuse(std::string_view key, const std::string& reason, const std::string& hint = "");
  void warn(std::string_view key, const std::string& message, const std::string& hint = "");

  /// Call last. Keys of `without_memory` (those that end in * stand for all that begin so) are passed over, others that
  /// nobody asked for are warnings, and `not_supported` are errors where they are on.
  NodePtr finish(std::initializer_list<std::span<const std::string_view>> without_memory,
                 std::span<const NotSupported> not_supported);

 private:
  std::string tool_;
  const TextNode& root_;
  const ForeignContext& context_;
  MapReader map_;
  JobTree job_;
};

}  // namespace qlp
