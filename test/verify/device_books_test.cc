#include "verify/device_books.h"

#include <doctest/doctest.h>

namespace qlp {
namespace {

using namespace literals;

DeviceReading reading(const std::string& point, Bytes used, Bytes segments) {
  return {.point = point, .used = used, .segments = segments, .source = "cudaMemGetInfo"};
}

RankMeasurement sample() {
  RankMeasurement measured;
  measured.device.used_by_others = 100_MiB;
  measured.readings = {reading("context", 620_MiB, Bytes{}),      reading("cublas", 655_MiB, 20_MiB),
                       reading("nccl", 855_MiB, 20_MiB),          reading("first_collective", 1155_MiB, 20_MiB),
                       reading("step1", 9275_MiB, 8000_MiB),      reading("step2", 9275_MiB, 8000_MiB),
                       reading("sampled_peak", 9300_MiB, Bytes{})};
  return measured;
}

TEST_CASE("verify/device_books: each term is what the device grew by beside the segments") {
  const DeviceBooks books = device_books(sample());
  CHECK(books.context == 520_MiB);
  CHECK(books.cublas == 15_MiB);
  CHECK(books.nccl == 500_MiB);
  CHECK(books.libraries == 15_MiB + 140_MiB);
  CHECK(books.device_used == 9300_MiB);
  CHECK(books.source == "cudaMemGetInfo, less what others held before the run");
}

TEST_CASE("verify/device_books: what the driver says of this process is preferred") {
  RankMeasurement measured = sample();
  measured.readings.pop_back();
  for (DeviceReading& r : measured.readings) {
    r.by_process = r.used;
    r.by_process->remove(100_MiB);
    r.used += 3000_MiB;  // somebody else came
  }
  const DeviceBooks books = device_books(measured);
  CHECK(books.context == 520_MiB);
  CHECK(books.nccl == 500_MiB);
  CHECK_FALSE(books.device_used);
  CHECK(books.source == "NVML, of this process");
}

TEST_CASE("verify/device_books: memory that others give back meanwhile makes no negative term") {
  RankMeasurement measured = sample();
  measured.readings[2].used = 600_MiB;  // below what cuBLAS left
  const DeviceBooks books = device_books(measured);
  CHECK(books.nccl == 500_MiB);  // seen at the first collective, all of it
  CHECK(device_books(RankMeasurement{}).context == Bytes{});
}

TEST_CASE("verify/device_books: pages of an optimizer's state are no overhead, as far as they are on the device") {
  RankMeasurement measured = sample();
  measured.managed_state = 100_MiB;  // of the 140 MiB by which the first step grew
  CHECK(device_books(measured).libraries == 15_MiB + 40_MiB);
  measured.managed_state = 1_GiB;  // most of it on the host
  CHECK(device_books(measured).libraries == 15_MiB);
  CHECK(device_books(measured).cublas == 15_MiB);
}

}  // namespace
}  // namespace qlp
