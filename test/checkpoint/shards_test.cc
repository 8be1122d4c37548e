#include "checkpoint/shards.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace qlp;

namespace {

nlohmann::json header_of(const ShardFile& file) {
  const std::string& bytes = file.pieces.front().bytes;
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8U | static_cast<unsigned char>(bytes[i]);
  REQUIRE(bytes.size() == 8 + length);
  CHECK(bytes.size() % 8 == 0);
  return nlohmann::json::parse(bytes.substr(8));
}

}  // namespace

TEST_CASE("checkpoint/shards: files are filled in order up to the size, and a larger tensor has its own") {
  const std::vector<StoredTensor> tensors{{"a", DType::float32, {10}, false, ""},
                                          {"b", DType::float32, {10}, false, ""},
                                          {"big", DType::float32, {1000}, false, ""},
                                          {"c", DType::float32, {5}, false, ""}};
  const auto files = cut_into_shards(tensors, Bytes{100});
  REQUIRE(files.size() == 3);
  CHECK(files[0].name == "model-00001-of-00003.safetensors");
  CHECK(files[0].tensors == std::vector<std::string>{"a", "b"});
  CHECK(files[1].tensors == std::vector<std::string>{"big"});
  CHECK(files[1].size == files[1].pieces.front().bytes.size() + 4000);
  const auto index = nlohmann::json::parse(shard_index(files, Bytes{4100}));
  CHECK(index["metadata"]["total_size"] == 4100);
  CHECK(index["weight_map"]["c"] == "model-00003-of-00003.safetensors");
  CHECK(index["weight_map"].size() == 4);
}

TEST_CASE("checkpoint/shards: within a file each tensor lies where its element type allows, without gaps") {
  const std::vector<StoredTensor> tensors{{"odd", DType::uint8, {3}, false, "abc"},
                                          {"z", DType::bfloat16, {3}, false, ""},
                                          {"a", DType::bfloat16, {1}, false, ""},
                                          {"wide", DType::float32, {2, 2}, false, ""}};
  const auto files = cut_into_shards(tensors, Bytes{1000});
  REQUIRE(files.size() == 1);
  const auto header = header_of(files[0]);
  CHECK(header["wide"]["data_offsets"] == std::vector{0, 16});
  CHECK(header["a"]["data_offsets"] == std::vector{16, 18});
  CHECK(header["z"]["data_offsets"] == std::vector{18, 24});
  CHECK(header["odd"]["data_offsets"] == std::vector{24, 27});
  CHECK(header["odd"]["dtype"] == "U8");
  CHECK(header["wide"]["shape"] == std::vector{2, 2});
  CHECK(header["__metadata__"]["format"] == "pt");
  REQUIRE(files[0].pieces.size() == 2);
  CHECK(files[0].pieces[1].offset == files[0].pieces[0].bytes.size() + 24);
  CHECK(files[0].pieces[1].bytes == "abc");
  CHECK(files[0].size == files[0].pieces[0].bytes.size() + 27);
}
