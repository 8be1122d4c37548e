#include "verify/calibrate.h"

#include <doctest/doctest.h>

#include "config/machine_file.h"

namespace qlp {
namespace {

using namespace literals;

RankMeasurement rank(std::uint64_t context_mib) {
  const auto reading = [](const std::string& point, std::uint64_t used, std::uint64_t segments) {
    return DeviceReading{.point = point,
                         .used = Bytes{used << 20},
                         .segments = Bytes{segments << 20},
                         .by_process = Bytes{used << 20},
                         .source = "NVML"};
  };
  RankMeasurement out;
  out.device = {.name = "NVIDIA H100 80GB HBM3", .host = "node", .capacity = 81'082_MiB, .versions = {"NCCL 2.28.9"}};
  out.readings = {reading("context", context_mib, 0), reading("cublas", context_mib + 34, 0),
                  reading("nccl", context_mib + 534, 0), reading("step2", context_mib + 4664, 4000)};
  out.communicators = {{.ranks = 2, .ranks_per_node = 2, .all_reduce = true, .bytes = 500_MiB}};
  return out;
}

TEST_CASE("verify/calibrate: the most that a rank measured of each term, and a file that comes back") {
  const auto profile = calibrate({rank(520), rank(524)}, std::nullopt);
  REQUIRE(profile);
  CHECK(profile->gpu == "NVIDIA H100 80GB HBM3");
  CHECK(profile->capacity == 81'082_MiB);
  CHECK(profile->cuda_context == 524_MiB);
  CHECK(profile->cublas == 34_MiB);
  CHECK(profile->library_overhead == 130_MiB);
  REQUIRE(profile->nccl.size() == 1);
  CHECK(profile->nccl[0].memory == 500_MiB);
  const auto back = read_machine(to_yaml(*profile), "machine.yaml");
  REQUIRE(back);
  CHECK(*back == *profile);
}

TEST_CASE("verify/calibrate: communicators of earlier runs on the same software are kept") {
  const auto first = calibrate({rank(520)}, std::nullopt);
  REQUIRE(first);
  RankMeasurement eight = rank(520);
  eight.communicators = {{.ranks = 8, .ranks_per_node = 8, .all_reduce = true, .bytes = 900_MiB}};
  const auto both = calibrate({eight}, *first);
  REQUIRE(both);
  REQUIRE(both->nccl.size() == 2);
  CHECK(both->nccl[0].ranks == 2);
  CHECK(both->nccl[1].ranks == 8);
  RankMeasurement newer = eight;
  newer.device.versions = {"NCCL 2.30.7"};
  const auto anew = calibrate({newer}, *first);
  REQUIRE(anew);
  CHECK(anew->nccl.size() == 1);
}

TEST_CASE("verify/calibrate: what cannot be calibrated is refused") {
  RankMeasurement cpu;
  cpu.device.name = "cpu";
  CHECK(calibrate({cpu}, std::nullopt).error() == "cpu keeps no books: a machine is calibrated on its GPUs");
  RankMeasurement other = rank(520);
  other.device.name = "NVIDIA A10";
  CHECK(calibrate({rank(520), other}, std::nullopt).error().find("the GPUs differ") == 0);
  CHECK(calibrate({other}, *calibrate({rank(520)}, std::nullopt)).error().find("the profile is of another GPU") == 0);
  CHECK_FALSE(calibrate({}, std::nullopt));
}

}  // namespace
}  // namespace qlp
