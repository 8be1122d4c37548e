#include "memory/out_of_memory.h"

#include "base/text.h"

namespace qlp {

OutOfMemory::OutOfMemory(std::uint64_t requested, std::uint64_t capacity, const MemoryStats& stats)
    : std::runtime_error("out of memory: tried to allocate " + format_size(Bytes{requested}) + "; of " +
                         format_size(Bytes{capacity}) + ", " + format_size(Bytes{stats.reserved.current}) +
                         " are reserved and " + format_size(Bytes{stats.allocated.current}) + " allocated"),
      requested_(requested),
      capacity_(capacity),
      stats_(stats) {}

}  // namespace qlp
