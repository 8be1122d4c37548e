#include "verify/compare.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "verify/sample_measurement.h"

namespace qlp {
namespace {

using namespace literals;

/// The prediction that the sample measurement fulfils to the byte.
RankPrediction sample_prediction() {
  RankPrediction out;
  const RankMeasurement measured = sample_measurement();
  for (const MeasuredPhase& phase : measured.phases) {
    PhaseReport row{.name = phase.name, .phase = phase.name};
    row.peak = phase.peak, row.held = phase.held;
    out.report.phases.push_back(row);
  }
  out.report.peak.figures = out.report.training_peak.figures = measured.phases.back().peak;
  out.report.persistent = measured.phases.back().held;
  out.report.peak.device_used = 900_MiB;
  out.outside = {
      {"cuda_context", 528_MiB, "model"}, {"library_overhead", 164_MiB, "model"}, {"nccl", 484_MiB, "model"}};
  return out;
}

const ComparedFigure& figure(const std::vector<ComparedFigure>& all, const std::string& phase,
                             const std::string& name) {
  const auto found = std::ranges::find_if(all, [&](const auto& f) { return f.phase == phase && f.name == name; });
  REQUIRE_MESSAGE(found != all.end(), (phase + " " + name));
  return *found;
}

TEST_CASE("verify/compare: a run as predicted has no residual, in any phase") {
  const auto figures = compare(sample_measurement(), sample_prediction());
  std::size_t judged = 0;
  for (const ComparedFigure& f : figures) {
    if (!f.judged) continue;
    ++judged;
    CHECK(f.name.starts_with("allocated"));
    CHECK(f.unaccounted() == ByteDelta{0});
  }
  CHECK(judged == 3 + 2 * 2);
  CHECK(figure(figures, "load", "reserved_held").unaccounted() == ByteDelta{0});
}

TEST_CASE("verify/compare: state in managed memory is a figure of its own") {
  RankMeasurement measured = sample_measurement();
  measured.managed_state = 3_MiB;
  RankPrediction predicted = sample_prediction();
  CHECK(figure(compare(measured, predicted), "peak", "paged_optimizer_state").predicted == Bytes{});
  predicted.outside.push_back({.name = "paged_optimizer_state", .bytes = 3_MiB, .source = "model", .managed = true});
  CHECK(figure(compare(measured, predicted), "peak", "paged_optimizer_state").unaccounted() == ByteDelta{0});
}

TEST_CASE("verify/compare: a byte more is a residual where it is, and in the peak") {
  RankMeasurement measured = sample_measurement();
  measured.phases[1].peak.allocated += 512_B;
  const auto figures = compare(measured, sample_prediction());
  CHECK(figure(figures, "micro1.forward", "allocated").unaccounted() == ByteDelta{512});
  CHECK(figure(figures, "peak", "allocated").unaccounted() == ByteDelta{512});
  CHECK(figure(figures, "training_peak", "allocated").unaccounted() == ByteDelta{512});
  CHECK(figure(figures, "load", "allocated").unaccounted() == ByteDelta{0});
}

TEST_CASE("verify/compare: the peak of training leaves out what comes before the first forward") {
  RankMeasurement measured = sample_measurement();
  measured.phases[0].peak.allocated = 99_GiB;
  const auto figures = compare(measured, sample_prediction());
  CHECK(figure(figures, "peak", "allocated").measured == 99_GiB);
  CHECK(figure(figures, "training_peak", "allocated").unaccounted() == ByteDelta{0});
}

TEST_CASE("verify/compare: the peak of training and its end leave out evaluation and saving, which come after") {
  RankMeasurement measured = sample_measurement();
  RankPrediction predicted = sample_prediction();
  for (const char* name : {"evaluation", "save"}) {
    MeasuredPhase phase{name, measured.phases.back().peak, measured.phases.back().held};
    phase.peak.allocated = 99_GiB, phase.held.allocated += 512_B;
    measured.phases.push_back(phase);
  }
  const auto figures = compare(measured, predicted);
  CHECK(figure(figures, "peak", "allocated").measured == 99_GiB);
  CHECK(figure(figures, "training_peak", "allocated").unaccounted() == ByteDelta{0});
  CHECK(figure(figures, "end", "allocated").unaccounted() == ByteDelta{0});
}

TEST_CASE("verify/compare: a phase that only one side has is a judged figure without its other half") {
  RankMeasurement measured = sample_measurement();
  measured.phases[1].name = "micro1.backward";
  auto figures = compare(measured, sample_prediction());
  CHECK_FALSE(figure(figures, "micro1.backward", "allocated").predicted);
  CHECK_FALSE(figure(figures, "micro1.forward", "allocated").measured);
  CHECK(figure(figures, "micro1.forward", "allocated").judged);
  measured.phases.pop_back();
  figures = compare(measured, sample_prediction());
  CHECK_FALSE(figure(figures, "micro1.forward", "allocated").measured);
}

TEST_CASE("verify/compare: what follows a phase that only one side has is compared by its name") {
  RankMeasurement measured = sample_measurement();
  measured.phases.erase(measured.phases.begin());
  auto figures = compare(measured, sample_prediction());
  CHECK_FALSE(figure(figures, "load", "allocated").measured);
  CHECK(figure(figures, "micro1.forward", "allocated").unaccounted() == ByteDelta{0});

  RankPrediction nothing = sample_prediction();
  nothing.report.phases[0].peak = nothing.report.phases[0].held = {};
  figures = compare(measured, nothing);
  CHECK(figure(figures, "load", "allocated").measured == Bytes{});
}

TEST_CASE("verify/compare: the device's terms are beside those predicted, each with its residual") {
  RankMeasurement measured = sample_measurement();
  measured.readings = {{.point = "context", .used = 529_MiB, .segments = Bytes{}, .source = "cudaMemGetInfo"},
                       {.point = "nccl", .used = 1029_MiB, .segments = Bytes{}, .source = "cudaMemGetInfo"},
                       {.point = "sampled_peak", .used = 950_MiB, .segments = Bytes{}, .source = "sampled"}};
  auto figures = compare(measured, sample_prediction());
  CHECK(figure(figures, "peak", "cuda_context").unaccounted() == ByteDelta{0});  // 1 MiB is others'
  CHECK(figure(figures, "peak", "nccl").unaccounted() == difference(500_MiB, 484_MiB));
  CHECK(figure(figures, "peak", "device_used").unaccounted() == difference(950_MiB, 900_MiB));
  for (const ComparedFigure& f : figures) CHECK_FALSE(f.source.empty());

  figures = compare(measured, sample_prediction(), {.alone = true});
  const ComparedFigure& nccl = figure(figures, "peak", "nccl");
  CHECK_FALSE(nccl.measured);
  CHECK(nccl.predicted == 484_MiB);
  CHECK(nccl.source.find("model") != std::string::npos);
  CHECK(figure(figures, "peak", "device_used").predicted == 416_MiB);
}

TEST_CASE("verify/compare: without readings of the device nothing is said about it") {
  RankMeasurement measured = sample_measurement();
  measured.readings.clear();
  for (const ComparedFigure& f : compare(measured, sample_prediction())) CHECK(f.name != "device_used");
}

}  // namespace
}  // namespace qlp
