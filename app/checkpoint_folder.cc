#include "app/checkpoint_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "app/output.h"
#include "config/file_reader.h"
#include "config/json_parser.h"

namespace qlp::app {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw OutputError{"cannot write " + path + ": " + reason};
}
[[noreturn]] void fail(const std::string& path, int error) { fail(path, std::strerror(error)); }

/// The files that the manifest of the folder lists; none where there is no manifest.
std::set<std::string> listed_files(const std::string& folder) {
  std::set<std::string> names;
  const std::string path = folder + "/" + kManifest;
  const auto text = read_text(path, DiskFiles{});
  const auto manifest = text ? parse_json(*text, path) : Result<NodePtr>(Unexpected{text.error()});
  const TextNode* files = manifest ? find(**manifest, "files") : nullptr;
  if (!files) return names;
  for (const auto& file : files->items) names.insert(file->text);
  names.insert(kManifest);
  return names;
}

void check_target(const std::string& target) {
  if (const auto reason = why_not_ours(target)) fail(target, *reason);
}

void write_at(int file, std::uint64_t offset, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

std::uint64_t disk_bytes(const std::string& path) {
  constexpr std::uint64_t kBlock = 512;  // of st_blocks, whatever the file system's is
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * kBlock : 0;
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "\"" : ", \"") + name + "\"";
  return out;
}

void obey_interruption() {
  if (interruption_noted()) throw Interrupted{};
}

}  // namespace

std::optional<std::string> why_not_ours(const std::string& target) {
  struct stat status {};
  if (lstat(target.c_str(), &status) != 0) return std::nullopt;
  if (!S_ISDIR(status.st_mode)) return "it exists and is no folder";
  const auto ours = listed_files(target);
  for (const std::string& name : DiskFiles{}.list(target))
    if (!ours.contains(name)) return "it holds " + name + ", which this command did not write";
  return std::nullopt;
}

CheckpointFolder::CheckpointFolder(std::string target) : target_(std::move(target)) {
  while (target_.size() > 1 && target_.back() == '/') target_.pop_back();
  check_target(target_);
  std::error_code error;
  if (const auto parent = fs::path(target_).parent_path(); !parent.empty()) fs::create_directories(parent, error);
  if (error) fail(target_, error.value());
  staging_ = target_ + ".XXXXXX";
  if (mkdtemp(staging_.data()) == nullptr) {
    const int reason = errno;
    staging_.clear();
    fail(target_, reason);
  }
}

CheckpointFolder::~CheckpointFolder() {
  std::error_code none;
  if (!staging_.empty()) fs::remove_all(staging_, none);
}

std::string CheckpointFolder::in(const std::string& name) const { return staging_ + "/" + name; }

void CheckpointFolder::note(const std::string& name) {
  if (std::ranges::find(files_, name) == files_.end()) files_.push_back(name);
}

void CheckpointFolder::write(const TextFile& file) {
  obey_interruption();
  write_result(in(file.name), file.text);
  note(file.name);
}

void CheckpointFolder::write(const ShardFile& file) {
  obey_interruption();
  const std::string path = in(file.name);
  const int out = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (out < 0) fail(path, errno);
  const int error = ftruncate(out, static_cast<off_t>(file.size)) == 0 ? 0 : errno;
  try {
    if (error == EFBIG)
      fail(path, "the file system holds no file of " + std::to_string(file.size) + " bytes: give a --shard-size");
    if (error != 0) fail(path, error);
    std::uint64_t held = 0;
    for (const FilePiece& piece : file.pieces) {
      write_at(out, piece.offset, piece.bytes, path);
      held += piece.bytes.size();
    }
    // Pieces take whole blocks; far more than that means that the zeros were written too.
    constexpr std::uint64_t kSlack = 1U << 24;
    constexpr std::uint64_t kLargestBlock = 1U << 16;
    if (disk_bytes(path) > held + file.pieces.size() * kLargestBlock + kSlack)
      fail(path, "the file system has no sparse files, and the weights would take their whole size");
  } catch (...) {
    close(out);
    throw;
  }
  if (close(out) != 0) fail(path, errno);
  note(file.name);
}

void CheckpointFolder::copy(const std::string& from, const std::string& name) {
  obey_interruption();
  std::error_code error;
  fs::copy_file(from, in(name), fs::copy_options::overwrite_existing, error);
  if (error) fail(target_, "copying " + from + ": " + error.message());
  note(name);
}

std::uint64_t CheckpointFolder::publish() {
  obey_interruption();
  write_result(in(kManifest),
               "{\n  \"written_by\": \"qlora-plan sparse-weights\",\n  \"files\": [" + quoted_list(files_) + "]\n}\n");
  std::uint64_t taken = 0;
  for (const std::string& name : DiskFiles{}.list(staging_)) taken += disk_bytes(in(name));
  const mode_t mask = umask(0);
  umask(mask);
  if (chmod(staging_.c_str(), 0777 & ~mask) != 0) fail(target_, errno);  // mkdtemp gives it to its owner alone
  check_target(target_);
  std::string old;
  struct stat status {};
  if (lstat(target_.c_str(), &status) == 0) {
    old = staging_ + ".old";
    if (std::rename(target_.c_str(), old.c_str()) != 0) fail(target_, errno);
  }
  if (std::rename(staging_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    if (!old.empty() && std::rename(old.c_str(), target_.c_str()) != 0) fail(target_, "what was there is in " + old);
    fail(target_, error);
  }
  staging_.clear();
  std::error_code none;
  if (!old.empty()) fs::remove_all(old, none);
  return taken;
}

}  // namespace qlp::app
