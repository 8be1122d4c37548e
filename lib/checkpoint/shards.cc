#include "checkpoint/shards.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;
using TensorRefs = std::vector<const StoredTensor*>;

constexpr std::size_t kHeaderAlignment = 8;

std::vector<TensorRefs> fill(const std::vector<StoredTensor>& tensors, Bytes shard_size) {
  std::vector<TensorRefs> files(1);
  Bytes held;
  for (const StoredTensor& tensor : tensors) {
    const Bytes size = bytes_of(tensor);
    if (!files.back().empty() && held + size > shard_size) files.emplace_back(), held = Bytes{};
    files.back().push_back(&tensor);
    held += size;
  }
  return files;
}

std::string little_endian(std::uint64_t number) {
  std::string bytes(sizeof(number), '\0');
  for (char& byte : bytes) byte = static_cast<char>(number & 0xFF), number >>= 8U;
  return bytes;
}

std::string file_name(std::size_t index, std::size_t count) {
  const auto padded = [](std::size_t number) {
    const std::string digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return "model-" + padded(index + 1) + "-of-" + padded(count) + ".safetensors";
}

/// safetensors' format: the length of the header, the header, the data (safetensors/src/tensor.rs, serialize).
ShardFile shard(TensorRefs tensors) {
  std::ranges::sort(tensors, [](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(size_of(b->dtype), std::string_view(a->name)) <
           std::pair(size_of(a->dtype), std::string_view(b->name));
  });
  ShardFile file;
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::uint64_t end = 0;
  for (const StoredTensor* tensor : tensors) {
    const std::uint64_t start = end;
    end += bytes_of(*tensor).count();
    const Json entry{{"dtype", info(tensor->dtype).safetensors},
                     {"shape", std::vector<std::int64_t>(tensor->shape.begin(), tensor->shape.end())},
                     {"data_offsets", {start, end}}};
    header += "," + Json(tensor->name).dump() + ":" + entry.dump();
    if (!tensor->data.empty()) file.pieces.push_back({start, tensor->data});
    file.tensors.push_back(tensor->name);
  }
  header += "}";
  header.append((kHeaderAlignment - header.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  header = little_endian(header.size()) + header;
  for (FilePiece& piece : file.pieces) piece.offset += header.size();
  file.size = header.size() + end;
  file.pieces.insert(file.pieces.begin(), {0, std::move(header)});
  return file;
}

}  // namespace

std::vector<ShardFile> cut_into_shards(const std::vector<StoredTensor>& tensors, Bytes shard_size) {
  std::vector<ShardFile> files;
  auto filled = fill(tensors, shard_size);
  for (TensorRefs& refs : filled) {
    files.push_back(shard(std::move(refs)));
    files.back().name = file_name(files.size() - 1, filled.size());
  }
  return files;
}

std::string shard_index(const std::vector<ShardFile>& shards, Bytes total) {
  std::map<std::string, std::string> weight_map;
  for (const ShardFile& file : shards)
    for (const std::string& tensor : file.tensors) weight_map[tensor] = file.name;
  return Json{{"metadata", {{"total_size", total.count()}}}, {"weight_map", weight_map}}.dump(2) + "\n";
}

}  // namespace qlp
