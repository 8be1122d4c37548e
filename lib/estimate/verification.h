// A run of the real step beside its prediction: what each rank measured, how, and how far off it was. Plain values;
// verify/ fills them in, report/ turns them into text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/enum_names.h"
#include "memory/category.h"

namespace qlp {

/// What computes.
enum class VerifyDevice : std::uint8_t { cpu, cuda, null };
template <>
inline constexpr std::array<EnumName<VerifyDevice>, 3> kEnumNames<VerifyDevice>{{
    {VerifyDevice::cpu, "cpu"},
    {VerifyDevice::cuda, "cuda"},
    {VerifyDevice::null, "null"},
}};

/// Whose step is run.
enum class VerifyRunner : std::uint8_t {
  own,    ///< the program's
  torch,  ///< that of the libraries themselves (scripts/torch_runner.py)
};
template <>
inline constexpr std::array<EnumName<VerifyRunner>, 2> kEnumNames<VerifyRunner>{{
    {VerifyRunner::own, "own"},
    {VerifyRunner::torch, "torch"},
}};

/// How a rank ended.
enum class RankEnd : std::uint8_t {
  finished,             ///< with a result
  out_of_memory,        ///< of its device
  communicator_failed,  ///< NCCL, or the rendezvous
  device_failed,        ///< the driver, CUDA or a library
  refused,              ///< it cannot run this job, and says why
  died,                 ///< without a word: a signal, an exit
  hung,                 ///< no word for longer than the timeout
  stopped,              ///< well, until another rank failed
};
template <>
inline constexpr std::array<EnumName<RankEnd>, 8> kEnumNames<RankEnd>{{
    {RankEnd::finished, "finished"},
    {RankEnd::out_of_memory, "out_of_memory"},
    {RankEnd::communicator_failed, "communicator_failed"},
    {RankEnd::device_failed, "device_failed"},
    {RankEnd::refused, "refused"},
    {RankEnd::died, "died"},
    {RankEnd::hung, "hung"},
    {RankEnd::stopped, "stopped"},
}};

/// One amount, measured or predicted or both.
struct ComparedFigure {
  std::string name;                ///< "allocated", "reserved", "device_used", "cuda_context", "nccl", ...
  std::string phase;               ///< of the timeline; "peak", "training_peak" or "end" for the run as a whole
  std::optional<Bytes> measured;   ///< none: it could not be read here
  std::optional<Bytes> predicted;  ///< none: nothing was predicted, all of it is unaccounted
  std::string source;              ///< how it was measured, or why it was not
  bool judged = false;             ///< the tolerance is held against it

  /// measured - predicted; none where one of them is missing.
  std::optional<ByteDelta> unaccounted() const {
    if (!measured || !predicted) return std::nullopt;
    return difference(*measured, *predicted);
  }
};

struct ComparedCategory {
  Category category = Category::activations;
  Bytes measured, predicted;  ///< allocated
};

/// Blocks of one allocated size, of which one side has more.
struct TensorDifference {
  Bytes size;
  std::int64_t measured = 0, predicted = 0;  ///< how many
  std::string measured_as, predicted_as;     ///< what they are called there; empty where there is none
};

/// What is alive at the allocated peak of a phase.
struct ComparedPeak {
  std::string phase;
  std::vector<ComparedCategory> categories;  ///< those that hold anything
  std::vector<TensorDifference> tensors;     ///< that make the difference, the heaviest first
};

struct RankVerification {
  std::int64_t rank = 0;
  RankEnd end = RankEnd::stopped;
  std::string state;    ///< the last that it told: "micro1.forward"
  std::string message;  ///< why it did not finish; empty where it did
  std::string output;   ///< the last lines that it wrote, where it did not finish
  std::string device;   ///< what it ran on: "NVIDIA H200", "cpu"
  std::vector<ComparedFigure> figures;
  std::optional<ComparedPeak> peak;    ///< where what is alive was found too
  std::vector<double> losses;          ///< of the micro steps of this rank
  std::vector<double> gradient_norms;  ///< of the optimizer steps, before clipping; empty without clipping
  /// Optimizer steps, counted from 1, in which a gradient had overflowed: nothing was updated, and no state was made.
  std::vector<std::int64_t> skipped_steps;
};

/// How far a judged figure may be off: so many bytes, and such a share of the prediction.
struct Tolerance {
  Bytes bytes;
  double share = 0;
  bool allows(Bytes measured, Bytes predicted) const;
  friend bool operator==(const Tolerance&, const Tolerance&) = default;
};

/// How many ranks a run had, and how they were played.
struct Verification {
  std::string plan;
  VerifyDevice device = VerifyDevice::cpu;
  VerifyRunner runner = VerifyRunner::own;
  std::int64_t world_size = 1;
  bool alone = false;  ///< one rank of world_size was played, with copies instead of the wire
  std::int64_t steps = 0;
  Tolerance tolerance;
  std::vector<RankVerification> ranks;  ///< in their order
  std::vector<std::string> versions;    ///< of what it ran on: "driver 580.65.06"
  bool interrupted = false;

  bool finished() const;          ///< every rank has a result
  bool within_tolerance() const;  ///< and every judged figure is near enough, every loss a number
  bool out_of_memory() const;     ///< some rank ran out of memory: an answer, whatever became of the others
};

}  // namespace qlp
