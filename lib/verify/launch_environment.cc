#include "verify/launch_environment.h"

#include <array>
#include <charconv>
#include <string_view>

namespace qlp {
namespace {

/// The variables of one launcher. Without rank and size it did not start us.
struct Launcher {
  std::string_view name;
  std::string_view rank, world_size, local_rank, local_size;
  std::array<std::string_view, 3> run;  ///< together they name the run
};

// torch/distributed/run.py; mpirun's are those that accelerate and DeepSpeed read (utils/environment.py,
// comm/comm.py); srun's are its own (srun(1), OUTPUT ENVIRONMENT VARIABLES).
// torchrun comes first: it may itself run under srun.
constexpr std::array<Launcher, 4> kLaunchers{{
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", ""}},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {"PMI_ID", "HYDI_CONTROL_FD", ""}},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", {"SLURM_JOB_ID", "SLURM_STEP_ID", ""}},
}};

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  const std::string* find(std::string_view name) const {
    const auto found = environment_.find(std::string(name));
    return found == environment_.end() || found->second.empty() ? nullptr : &found->second;
  }

  std::optional<std::int64_t> number(std::string_view name) {
    const std::string* text = find(name);
    if (!text) return std::nullopt;
    std::int64_t value = 0;
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, value);
    if (error == std::errc{} && stop == end && value >= 0) return value;
    refuse(std::string(name) + " is '" + text->substr(0, 40) + "': expected a whole number");
    return std::nullopt;
  }

  void refuse(std::string message) { errors_.push_back({.code = "bad-environment", .message = std::move(message)}); }
  const Diagnostics& errors() const { return errors_; }

 private:
  const Environment& environment_;
  Diagnostics errors_;
};

/// "2(x3),1": how many tasks each node runs, by the first count (SLURM_STEP_TASKS_PER_NODE); nodes that differ are the
/// world's matter, not a rank's.
std::optional<std::int64_t> tasks_per_node(const std::string* text) {
  std::int64_t count = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), count).ec != std::errc{} || count < 1)
    return std::nullopt;
  return count;
}

bool started_us(const Launcher& launcher, const Reader& reader) {
  // In a batch script PROCID is set, though nothing ran srun: then there is no step.
  if (launcher.name == "Slurm" && !reader.find("SLURM_STEP_ID")) return false;
  return reader.find(launcher.rank) && reader.find(launcher.world_size);
}

void check(const LaunchedRank& found, const Launcher& launcher, Reader& reader) {
  const auto outside = [&](std::string_view what, std::int64_t value, std::string_view of, std::int64_t count) {
    if (value < count) return;
    reader.refuse(std::string(what) + " is " + std::to_string(value) + ", and " + std::string(of) + " " +
                  std::to_string(count));
  };
  outside(launcher.rank, found.rank, launcher.world_size, found.world_size);
  outside(launcher.local_rank, found.local_rank, "ranks of this machine are", found.local_size);
}

}  // namespace

Result<std::optional<LaunchedRank>> launched_rank(const Environment& environment) {
  Reader reader(environment);
  for (const Launcher& launcher : kLaunchers) {
    if (!started_us(launcher, reader)) continue;
    LaunchedRank found{.launcher = std::string(launcher.name)};
    found.rank = reader.number(launcher.rank).value_or(0);
    found.world_size = reader.number(launcher.world_size).value_or(1);
    found.local_rank = reader.number(launcher.local_rank).value_or(found.rank);
    const auto of_slurm = tasks_per_node(reader.find("SLURM_STEP_TASKS_PER_NODE"));
    found.local_size = launcher.local_size.empty() ? of_slurm.value_or(found.world_size)
                                                   : reader.number(launcher.local_size).value_or(found.world_size);
    for (const std::string_view part : launcher.run)
      if (const std::string* value = reader.find(part)) found.run += (found.run.empty() ? "" : "-") + *value;
    if (reader.errors().empty()) check(found, launcher, reader);
    if (!reader.errors().empty()) return Unexpected{reader.errors()};
    return std::optional{found};
  }
  return std::optional<LaunchedRank>{};
}

}  // namespace qlp
