#include "verify/peak_sampler.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace qlp {

PeakSampler::PeakSampler(std::function<Bytes()> read, std::chrono::milliseconds interval)
    : read_(std::move(read)), interval_(interval), thread_([this] { run(); }) {}

void PeakSampler::look() {
  try {
    peak_ = std::max(peak_, read_());
  } catch (const std::exception&) {  // whoever uses the device meets the same, and tells
  }
}

void PeakSampler::run() {
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    look();
    lock.lock();
  } while (!wake_.wait_for(lock, interval_, [this] { return stopping_; }));
  lock.unlock();
  look();
}

Bytes PeakSampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  return peak_;
}

}  // namespace qlp
