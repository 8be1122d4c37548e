// Host functions of all streams, called in order by a thread of their own, as CUDA does.
#pragma once

#include <cstdint>
#include <functional>

namespace nullgpu {

/// A number that grows; 0 is none.
std::uint64_t queue_host_work(std::function<void()> function);
std::uint64_t last_host_work();
bool host_work_done(std::uint64_t number);
void wait_for_host_work(std::uint64_t number);

void lock_host_queue();
void unlock_host_queue();

}  // namespace nullgpu
