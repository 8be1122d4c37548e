#include "kernels/bench.h"

#include <cmath>
#include <string>

#include "tensor/number.h"

namespace qlp::test {

Twin::Twin(DType dtype, const Shape& whole, const Shape& shape, const Strides& strides)
    : memory(bytes_of(whole, dtype).count(), std::byte{0xff}) {
  void* data = nullptr;
  REQUIRE(cudaMalloc(&data, memory.size()) == cudaSuccess);
  cpu = {memory.data(), dtype, shape, strides};
  device = {static_cast<std::byte*>(data), dtype, shape, strides};
}

Twin::~Twin() { cudaFree(device.data); }

void Bench::randomize(Twin& twin, double low, double high) {
  Array all = twin.cpu;
  all.shape = {twin.elements()}, all.strides = contiguous_strides(all.shape);
  host_.random_uniform(0, all, 42, ++sequence_ << 32U, low, high);
  device_.upload(0, twin.device.data, twin.memory.data(), twin.memory.size());
}

void Bench::set(Twin& twin, const std::vector<double>& values) {
  REQUIRE(static_cast<std::int64_t>(values.size()) == twin.elements());
  const std::size_t size = size_of(twin.cpu.dtype);
  for (std::size_t i = 0; i < values.size(); ++i) store_number(&twin.memory[i * size], twin.cpu.dtype, values[i]);
  device_.upload(0, twin.device.data, twin.memory.data(), twin.memory.size());
}

namespace {

std::vector<double> numbers_in(const std::vector<std::byte>& memory, DType dtype) {
  std::vector<double> numbers(memory.size() / size_of(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = load_number(&memory[i * size_of(dtype)], dtype);
  return numbers;
}

bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

}  // namespace

std::vector<double> Bench::on_host(const Twin& twin) const { return numbers_in(twin.memory, twin.cpu.dtype); }

std::vector<double> Bench::on_device(const Twin& twin) {
  std::vector<std::byte> bytes(twin.memory.size());
  device_.download(0, bytes.data(), twin.device.data, bytes.size());
  return numbers_in(bytes, twin.cpu.dtype);
}

void Bench::compare(const Operation& operation, const std::vector<Twin*>& results, double tolerance) {
  std::vector<std::vector<std::byte>> before, first;
  for (const Twin* twin : results) before.push_back(twin->memory);
  operation(host_, [](const Twin& twin) { return twin.cpu; });
  in_every_order([&] {
    for (std::size_t i = 0; i < results.size(); ++i)
      device_.upload(0, results[i]->device.data, before[i].data(), before[i].size());
    operation(device_, [](const Twin& twin) { return twin.device; });
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::vector<std::byte> bytes(before[i].size());
      device_.download(0, bytes.data(), results[i]->device.data, bytes.size());
      if (first.size() == i) first.push_back(bytes);
      INFO("result " << i);
      CHECK_MESSAGE(bytes == first[i], "the result depends on the order of threads");
    }
  });
  for (std::size_t i = 0; i < results.size(); ++i) {
    const DType dtype = results[i]->cpu.dtype;
    const auto expected = on_host(*results[i]), got = numbers_in(first[i], dtype);
    std::string wrong;
    for (std::size_t j = 0; j < got.size() && wrong.empty(); ++j)
      if (!close(got[j], expected[j], tolerance))
        wrong = "element " + std::to_string(j) + ": " + std::to_string(got[j]) + ", on the host " +
                std::to_string(expected[j]);
    INFO("result " << i << " of " << name_of(dtype) << " " << to_string(results[i]->cpu.shape) << ": " << wrong);
    CHECK(wrong.empty());
  }
}

}  // namespace qlp::test
