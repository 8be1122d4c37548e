// Threads of a block as fibers of one thread of the host. Warp by warp they go on until they wait at a barrier of the
// block or leave; threads that have not begun follow each other on one stack.
#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <ucontext.h>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffU;
constexpr std::size_t kStackBytes = std::size_t{64} << 10;

// Not instrumented: AddressSanitizer takes every jump for one that unwinds, and cleans the whole stack before it.
#define QLP_SWITCHES_STACKS __attribute__((noinline, no_sanitize_address))

/// Where a stack is left and taken up again.
class Place {
 public:
  /// Goes on at `to`, until somebody comes back here.
  QLP_SWITCHES_STACKS void leave_for(Place& to) {
    if (__builtin_setjmp(registers_) == 0) to.go();  // no system call, which swapcontext makes
  }
  /// The same for a stack on which nothing has run.
  QLP_SWITCHES_STACKS void begin(ucontext_t& here, const ucontext_t& first) {
    if (__builtin_setjmp(registers_) == 0) swapcontext(&here, &first);
  }
  [[noreturn]] QLP_SWITCHES_STACKS void go() { __builtin_longjmp(registers_, 1); }

 private:
  void* registers_[5]{};
};

/// A stack on which threads run, one after another until one has to wait. Kept from launch to launch.
struct Fiber {
  Place place;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  bool begun = false;
};

enum class State { not_begun, runs, at_block_barrier, at_shuffle, left };

struct Thread {
  dim3 index;
  State state = State::not_begun;
  Fiber* fiber = nullptr;      ///< while it waits
  unsigned shuffles = 0;       ///< so far
  std::uint64_t offered[2]{};  ///< in turns: a lane that is one shuffle ahead must not overwrite what others still read
};

/// One launch at a time.
struct Machine {
  std::vector<Thread> threads;  ///< of the block that runs
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;
  std::size_t current = 0;  ///< thread
  Place scheduler;
  std::vector<std::size_t> order;  ///< of the threads of the warp that runs
  std::size_t next = 0;            ///< in that order
  const std::function<void()>* kernel = nullptr;
  std::exception_ptr failure;
  Order kind = Order::forward;
  std::mt19937 random{1};
} machine;

// AddressSanitizer has to know which stack is in use.
const void* scheduler_stack = nullptr;
std::size_t scheduler_stack_bytes = 0;
void announce([[maybe_unused]] void** fake, [[maybe_unused]] const void* bottom, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake, bottom, bytes);
#endif
}
void arrived([[maybe_unused]] void* fake, [[maybe_unused]] const void** bottom, [[maybe_unused]] std::size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, bottom, bytes);
#endif
}

void back_to_scheduler(Fiber& fiber) {
  void* fake = nullptr;
  announce(&fake, scheduler_stack, scheduler_stack_bytes);
  fiber.place.leave_for(machine.scheduler);
  arrived(fake, &scheduler_stack, &scheduler_stack_bytes);
}

/// The running thread waits.
void wait(State at) {
  Thread& thread = machine.threads[machine.current];
  thread.state = at;
  back_to_scheduler(*thread.fiber);
}

void run_thread(std::size_t i, Fiber& fiber) {
  Thread& thread = machine.threads[i];
  machine.current = i;
  threadIdx = thread.index;
  thread.state = State::runs, thread.fiber = &fiber;
  try {
    (*machine.kernel)();
  } catch (...) {
    machine.failure = std::current_exception();
  }
  machine.threads[i].state = State::left;
}

/// Takes thread after thread that has not begun. (Not a reference to the thread: the fiber changes hands.)
void fiber_main() {
  arrived(nullptr, &scheduler_stack, &scheduler_stack_bytes);
  for (;;) {
    Fiber& self = *machine.threads[machine.current].fiber;
    run_thread(machine.current, self);
    while (machine.next < machine.order.size() &&
           machine.threads[machine.order[machine.next]].state == State::not_begun)
      run_thread(machine.order[machine.next++], self);
    machine.idle.push_back(&self);
    back_to_scheduler(self);
  }
}

/// Begins a thread or goes on with it, and returns when all that could be done on its stack is done.
void resume(std::size_t i) {
  Thread& thread = machine.threads[i];
  if (thread.state == State::not_begun) {
    if (machine.idle.empty()) machine.idle.push_back(machine.fibers.emplace_back(std::make_unique<Fiber>()).get());
    thread.fiber = machine.idle.back();
    machine.idle.pop_back();
  }
  Fiber& fiber = *thread.fiber;
  machine.current = i;
  threadIdx = thread.index;
  void* fake = nullptr;
  announce(&fake, fiber.stack.get(), kStackBytes);
  if (std::exchange(fiber.begun, true)) {
    machine.scheduler.leave_for(fiber.place);
  } else {
    ucontext_t first, here;
    getcontext(&first);
    first.uc_stack.ss_sp = fiber.stack.get(), first.uc_stack.ss_size = kStackBytes, first.uc_link = nullptr;
    makecontext(&first, fiber_main, 0);
    machine.scheduler.begin(here, first);
  }
  arrived(fake, nullptr, nullptr);
}

std::vector<std::size_t> ordered(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (machine.kind == Order::backward) std::reverse(order.begin(), order.end());
  if (machine.kind == Order::shuffled) std::shuffle(order.begin(), order.end(), machine.random);
  return order;
}

/// Lets on threads [begin, end) if every one of them waits at `state`.
bool let_on(std::size_t begin, std::size_t end, State state) {
  const auto first = machine.threads.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = machine.threads.begin() + static_cast<std::ptrdiff_t>(end);
  if (!std::all_of(first, last, [&](const Thread& t) { return t.state == state; })) return false;
  std::for_each(first, last, [](Thread& t) { t.state = State::runs; });
  return true;
}

/// Lets a warp run ahead of the others, until it is at a barrier of the block or has left.
void run_warp(std::size_t begin, std::size_t end) {
  do {
    machine.order = ordered(end - begin);
    for (std::size_t& i : machine.order) i += begin;
    for (machine.next = 0; machine.next < machine.order.size();) {
      const std::size_t i = machine.order[machine.next++];
      if (machine.threads[i].state <= State::runs) resume(i);
    }
    if (machine.failure) std::rethrow_exception(std::exchange(machine.failure, nullptr));
  } while (let_on(begin, end, State::at_shuffle));
}

void run_block(dim3 block) {
  const std::size_t count = machine.threads.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto linear = static_cast<unsigned>(i);
    machine.threads[i] = {dim3(linear % block.x, linear / block.x % block.y, linear / (block.x * block.y))};
  }
  do {
    for (const std::size_t warp : ordered((count + kWarp - 1) / kWarp))
      run_warp(warp * kWarp, std::min((warp + 1) * kWarp, count));
  } while (let_on(0, count, State::at_block_barrier));
  if (!std::all_of(machine.threads.begin(), machine.threads.end(),
                   [](const Thread& t) { return t.state == State::left; }))
    throw std::logic_error("threads wait at a barrier or shuffle that others never reach");
}

}  // namespace

void set_order(Order order) { machine.kind = order; }

void launch(dim3 grid, dim3 block, const std::function<void()>& kernel) {
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
    throw std::invalid_argument("no GPU launches a grid or block of this size");
  machine.threads.resize(threads);
  machine.kernel = &kernel;
  gridDim = grid, blockDim = block;
  for (const std::size_t i : ordered(std::size_t{grid.x} * grid.y * grid.z)) {
    const auto linear = static_cast<unsigned>(i);
    blockIdx = dim3(linear % grid.x, linear / grid.x % grid.y, linear / (grid.x * grid.y));
    try {
      run_block(block);
    } catch (...) {  // threads that wait will not be heard of again, nor will their stacks
      machine.idle.clear(), machine.fibers.clear();
      throw;
    }
  }
}

void block_barrier() { wait(State::at_block_barrier); }

unsigned lane() { return static_cast<unsigned>(machine.current) % kWarp; }

std::uint64_t exchange(unsigned mask, std::uint64_t value, unsigned from) {
  const std::size_t self = machine.current, warp = self / kWarp * kWarp;
  if (mask != kAllLanes || warp + kWarp > machine.threads.size())
    throw std::logic_error("a shuffle in a warp that is not whole");
  const unsigned turn = machine.threads[self].shuffles++ % 2;
  machine.threads[self].offered[turn] = value;
  wait(State::at_shuffle);
  return machine.threads[warp + from % kWarp].offered[turn];
}

}  // namespace emulation
