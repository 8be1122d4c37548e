// What the probe (lib/nullgpu/probe) wrote of one process of a traced program: lines of JSON, each an event.
//
//   torch         argv, version, cuda, hip, rank, world_size       torch was imported
//   phase         name, phase, device, peak, held, device_peak, retries, ooms   a phase is over; peak and held are
//                 {requested, allocated, active, reserved}; a name that comes twice in a row is one phase
//   answer        kind, operation, place, value, count             reads that were answered by rule
//   inventory     device, phase, items                             blocks alive at the allocated peak, largest first
//   library       unimplemented, assumptions                       of the null GPU
//   exception     type, message, out_of_memory                     it ended the program
//   problem       message                                          the probe itself could not do something
//   end           reason, versions, rank, world_size               the record is whole
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "estimate/rank_ledger.h"

namespace qlp {

struct ProbedPhase {
  std::string name;
  std::string phase;
  std::int64_t device = 0;
  LedgerFigures peak;
  LedgerFigures held;
  Bytes device_peak;          ///< most that was ever taken of the device, by whatever
  std::uint64_t retries = 0;  ///< so far: the allocator gave its cache back to go on
  std::uint64_t ooms = 0;     ///< so far: it failed all the same
};

/// Reads of what a kernel would have written, answered by rule.
struct ProbedAnswer {
  std::string kind;       ///< bool, float, int, compare, equal, nonzero
  std::string operation;  ///< "item", "cpu", ...
  std::string place;      ///< "train.py:12 (main)"
  std::string value;      ///< the first one, as JSON has it
  std::uint64_t count = 0;
};

struct ProbedException {
  std::string type;
  std::string message;
  bool out_of_memory = false;
};

struct ProbedInventory {
  std::int64_t device = 0;
  std::string phase;  ///< its name
  std::vector<InventoryItem> items;
};

struct ProcessRecord {
  std::vector<std::string> command;
  std::string torch;
  std::string cuda;  ///< the version that torch is built for; empty: none
  std::string hip;
  std::vector<ProbedPhase> phases;
  std::vector<ProbedAnswer> answers;
  std::vector<ProbedInventory> inventories;
  std::vector<std::pair<std::string, std::uint64_t>> unimplemented;  ///< entry points and their calls
  std::vector<std::string> assumptions;
  std::optional<ProbedException> exception;
  std::vector<std::string> problems;
  std::vector<std::pair<std::string, std::string>> versions;
  std::string end;  ///< "steps", "exit"; empty where the process was cut off
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
};

/// A last line that was cut off is left out. Errors: "json-syntax" and what the fields have wrong, with the line.
Result<ProcessRecord> read_probe_record(std::string_view text, const std::string& file);

}  // namespace qlp
