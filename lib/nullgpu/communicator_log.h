// Which communicators the program made, for the report.
#pragma once

#include <cstddef>
#include <vector>

namespace nullgpu {

struct CommunicatorEntry {
  int size;
  int rank;
  unsigned long long collectives;
};

std::size_t log_communicator(int size, int rank);
void log_collective(std::size_t communicator);
std::vector<CommunicatorEntry> communicators_made();

}  // namespace nullgpu
