#include "verify/launch_environment.h"

#include <doctest/doctest.h>

namespace qlp {
namespace {

LaunchedRank found(const Environment& environment) {
  const auto rank = launched_rank(environment);
  REQUIRE(rank);
  REQUIRE(*rank);
  return **rank;
}

bool is_alone(const Environment& environment) {
  const auto rank = launched_rank(environment);
  REQUIRE(rank);
  return !*rank;
}

TEST_CASE("verify/launch_environment: torchrun, srun and the two mpiruns are understood") {
  CHECK(found({{"RANK", "5"},
               {"WORLD_SIZE", "8"},
               {"LOCAL_RANK", "1"},
               {"LOCAL_WORLD_SIZE", "4"},
               {"TORCHELASTIC_RUN_ID", "none"},
               {"TORCHELASTIC_RESTART_COUNT", "0"},
               {"MASTER_PORT", "29500"}}) == LaunchedRank{"torchrun", 5, 8, 1, 4, "none-0-29500"});
  CHECK(found({{"SLURM_PROCID", "3"},
               {"SLURM_NTASKS", "4"},
               {"SLURM_LOCALID", "1"},
               {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
               {"SLURM_JOB_ID", "77"},
               {"SLURM_STEP_ID", "0"}}) == LaunchedRank{"Slurm", 3, 4, 1, 2, "77-0"});
  CHECK(found({{"OMPI_COMM_WORLD_RANK", "1"},
               {"OMPI_COMM_WORLD_SIZE", "2"},
               {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
               {"PMIX_NAMESPACE", "prterun-1"}}) == LaunchedRank{"Open MPI", 1, 2, 1, 2, "prterun-1"});
  CHECK(found({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}}) ==
        LaunchedRank{"MPICH", 0, 2, 0, 2, ""});
}

TEST_CASE("verify/launch_environment: torchrun within srun is torchrun") {
  const LaunchedRank rank =
      found({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}});
  CHECK(rank.launcher == "torchrun");
  CHECK(rank.rank == 1);
  CHECK(rank.local_rank == 1);
  CHECK(rank.local_size == 2);
}

TEST_CASE("verify/launch_environment: a process that nobody started as a rank is alone") {
  CHECK(is_alone({}));
  CHECK(is_alone({{"RANK", "0"}}));
  CHECK(is_alone({{"WORLD_SIZE", "8"}, {"RANK", ""}}));
  // A batch script that did not call srun.
  CHECK(is_alone({{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "4"}}));
}

TEST_CASE("verify/launch_environment: variables that make no sense are errors, all at once") {
  const auto numbers = launched_rank({{"RANK", "one"}, {"WORLD_SIZE", "-2"}});
  REQUIRE_FALSE(numbers);
  REQUIRE(numbers.error().size() == 2);
  CHECK(numbers.error()[0].message == "RANK is 'one': expected a whole number");
  CHECK(numbers.error()[1].message == "WORLD_SIZE is '-2': expected a whole number");
  const auto beyond =
      launched_rank({{"RANK", "8"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "4"}, {"LOCAL_WORLD_SIZE", "4"}});
  REQUIRE_FALSE(beyond);
  REQUIRE(beyond.error().size() == 2);
  CHECK(beyond.error()[0].message == "RANK is 8, and WORLD_SIZE 8");
}

}  // namespace
}  // namespace qlp
