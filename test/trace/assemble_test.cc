#include "trace/assemble.h"

#include <doctest/doctest.h>

#include "estimate/ledger.h"
#include "estimate/outside_terms.h"
#include "plan/gpu_catalogue.h"
#include "trace/records.h"

namespace qlp {
namespace {

TraceSetup setup(std::int64_t world_size = 1) {
  TraceSetup out{.command = {"python", "train.py"}, .cluster = {}, .played_rank = {}};
  out.cluster.gpu = *find_gpu("A100 SXM4 80GB");
  out.cluster.world_size = world_size;
  if (world_size > 1) out.played_rank = 0;
  return out;
}

ProgramRun ended(int code = 0, const std::string& output = "") {
  return {.how = RunEnd::ended, .end = {.code = code, .signal = 0}, .message = {}, .output = output};
}

ProcessRecord record(const std::string& text) {
  auto out = read_probe_record(text, "record");
  REQUIRE(out);
  return *out;
}

const std::string kTorch = torch_event("2.8.0", "12.8");
const std::string kSome = kTorch + phase_event("micro1.forward", "forward", "1024");

bool has(const TraceReport& report, std::string_view code) {
  for (const Diagnostic& d : report.diagnostics)
    if (d.code == code) return true;
  return false;
}

}  // namespace

TEST_CASE("trace/assemble: a run that went well has peaks of the whole and of training, and fits") {
  const TraceReport report = assemble(setup(), {record(linear_record())}, ended());
  CHECK(report.outcome == TraceOutcome::ran);
  CHECK(report.fits);
  REQUIRE(report.ranks.size() == 1);
  const RankReport& rank = report.ranks.front().report;
  CHECK(rank.peak.figures.allocated == Bytes{18368000});
  CHECK(rank.peak.phase_label == "micro2.forward");
  CHECK(rank.training_peak.figures.requested == Bytes{18367492});
  CHECK(rank.persistent.allocated == Bytes{17303040});
  CHECK(rank.peak.device_used == rank.peak.figures.reserved + sum(report.outside));
  CHECK(rank.peak.categories[static_cast<std::size_t>(Category::workspace)] == Bytes{17039360});
  CHECK(report.answers.size() == 1);
  CHECK(report.diagnostics.empty());
}

TEST_CASE("trace/assemble: the inventory adds up to the peak that was measured") {
  const TraceReport report = assemble(setup(), {record(linear_record())}, ended());
  Bytes listed;
  for (const Bytes bytes : report.ranks.front().report.peak.categories) listed += bytes;
  CHECK(listed == report.ranks.front().report.peak.figures.allocated);
}

TEST_CASE("trace/assemble: out of memory is an answer, in PyTorch's words") {
  const std::string died =
      kSome +
      R"({"event": "exception", "type": "OutOfMemoryError", "message": "CUDA out of memory. Tried", )"
      R"("out_of_memory": true})" +
      "\n";
  const TraceReport report = assemble(setup(), {record(died)}, ended(1));
  CHECK(report.outcome == TraceOutcome::out_of_memory);
  CHECK_FALSE(report.fits);
  CHECK(report.message == "CUDA out of memory. Tried");
}

TEST_CASE("trace/assemble: memory that ran out is named though the program caught the error") {
  const std::string text = kTorch + phase_event("micro1.forward", "forward", "1024", R"("retries": 2, "ooms": 1)");
  CHECK(assemble(setup(), {record(text)}, ended(1)).outcome == TraceOutcome::out_of_memory);
  CHECK(assemble(setup(), {record(text)}, ended(0)).outcome == TraceOutcome::ran);
}

TEST_CASE("trace/assemble: a failure says what went wrong") {
  const auto message = [](const std::vector<ProcessRecord>& records, const ProgramRun& run) {
    const TraceReport report = assemble(setup(), records, run);
    CHECK(report.outcome == TraceOutcome::failed);
    return report.message;
  };
  const auto says = [&](const std::string& text, const std::string& part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  says(message({}, ended(1, "ModuleNotFoundError: No module named 'torch'")), "no torch");
  says(message({}, ended(0)), "imported torch");
  says(message({record(torch_event("2.8.0+cpu", ""))}, ended(0)), "built for the CPU");
  says(message({record(torch_event("2.8.0+rocm6.3", "", "6.3"))}, ended(0)), "ROCm");
  says(message({record(kTorch)}, ended(0)), "nothing on the GPU");
  says(message({record(kSome)}, {.how = RunEnd::ended, .end = {.code = 0, .signal = 11}, .message = {}, .output = {}}),
       "signal 11");
  const auto killed = [](int signal) {
    return ProgramRun{.how = RunEnd::ended, .end = {.code = 0, .signal = signal}, .message = {}, .output = {}};
  };
  says(message({record(kTorch)}, killed(11)), "before the end of its first phase");
  says(message({record(kTorch)}, killed(9)), "host's memory");
  says(message({}, {.how = RunEnd::not_started, .end = {}, .message = "train: No such file", .output = {}}),
       "No such file");
  says(message({record(kSome + R"({"event": "exception", "type": "ValueError", "message": "bad"})" + "\n")}, ended(1)),
       "ValueError: bad");
}

TEST_CASE("trace/assemble: a hang is told apart") {
  CHECK(assemble(setup(), {record(kSome)}, {.how = RunEnd::hung, .end = {}, .message = {}, .output = {}}).outcome ==
        TraceOutcome::hung);
}

TEST_CASE("trace/assemble: ranks in processes of their own, the worst first; NCCL is a term of theirs") {
  std::vector<ProcessRecord> records;
  for (int rank = 0; rank < 3; ++rank) {
    records.push_back(record(kTorch + phase_event("micro1.forward", "forward", rank == 1 ? "4096" : "2048") +
                             R"({"event": "end", "reason": "exit", "rank": )" + std::to_string(rank) +
                             R"(, "world_size": 3, "versions": {}})" + "\n"));
  }
  records.push_back(record(kTorch));  // the launcher
  const TraceReport report = assemble(setup(), records, ended());
  REQUIRE(report.ranks.size() == 3);
  CHECK(report.ranks.front().report.rank == 1);
  CHECK(report.ranks.at(1).report.rank == 0);
  CHECK(report.cluster.world_size == 3);
  CHECK(report.outside.back().name == "nccl");
  CHECK(report.fits);
}

TEST_CASE("trace/assemble: what lies outside the allocator must find room as well") {
  TraceSetup tight = setup();
  tight.cluster.gpu.capacity = sum(device_terms(tight.cluster)) + Bytes{1000};
  tight.cluster.margin = 0;
  const TraceReport report = assemble(tight, {record(kSome)}, ended());
  CHECK(report.outcome == TraceOutcome::ran);
  CHECK_FALSE(report.fits);
  CHECK(has(report, "no-room-beside"));
}

TEST_CASE("trace/assemble: findings name what was not implemented, cut off, or no training") {
  const TraceReport report = assemble(
      setup(),
      {record(kTorch + phase_event("load", "load", "512", R"("retries": 3, "ooms": 0)") +
              R"({"event": "library", "unimplemented": {"cufftExec": 2}, "assumptions": ["a workspace"]})" + "\n")},
      ended());
  CHECK(report.unimplemented.front().first == "cufftExec");
  CHECK(report.assumptions.front() == "a workspace");
  for (const char* code : {"unimplemented", "cut-off", "no-training", "cache-given-back"})
    CHECK_MESSAGE(has(report, code), code);
}

}  // namespace qlp
