// A checkpoint on disk: sparse files in a folder that appears whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/interruption.h"
#include "checkpoint/sparse_checkpoint.h"

namespace qlp::app {

/// The file in which a folder that was written here says so, and lists its files.
inline constexpr const char* kManifest = "sparse-weights.json";

/// Why the folder may not be written: it exists, and is neither empty nor all our own. None if it may.
std::optional<std::string> why_not_ours(const std::string& target);

/// A folder beside `target` that becomes it. Errors are thrown as OutputError; an interruption, once the folder is gone
/// again, as Interrupted.
class CheckpointFolder {
 public:
  /// Makes the folders above it. Fails where why_not_ours has a reason.
  explicit CheckpointFolder(std::string target);
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  const std::string& path() const { return staging_; }
  void write(const TextFile& file);
  void write(const ShardFile& file);
  void copy(const std::string& from, const std::string& name);
  /// Puts it in the target's place, with the manifest; returns what it takes on the disk.
  std::uint64_t publish();

 private:
  std::string in(const std::string& name) const;
  void note(const std::string& name);

  InterruptionNoted interruption_;
  std::string target_, staging_;
  std::vector<std::string> files_;
};

}  // namespace qlp::app
