#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

// torch/optim/_muon.py, 2.14, whose names hold on to a tensor until they get the next one.
TEST_CASE("optim/muon: one average; products in bfloat16 over the shorter side, five times") {
  OptimizerJob job({{{300, 200}, DType::float32}});
  CHECK(job.make(Muon{}, {{0}}).empty());
  Events update{240000, 120000, 2, 2, -2, -2, 80000, 80000, 120000, -120000};
  for (int i = 0; i < 4; ++i)
    for (const auto event : {80000, -80000, 80000, -80000, 120000, -120000}) update.push_back(event);
  for (const auto event : {-80000, -80000, -240000, -120000}) update.push_back(event);
  Events first = update;
  first.insert(first.begin(), 240000);  // the momentum, kept
  CHECK(job.step() == first);
  CHECK(job.step() == update);
}

// As recorded with torch 2.14.1: parts of DTensors, [8, 512] and [512, 8], of which each of four ranks has the same.
TEST_CASE("optim/muon: rows that are cut are gathered for each product, columns make sums over the ranks") {
  const auto second_step = [](const Shape& part, std::int64_t whole) {
    OptimizerJob job({{part, DType::float32}});
    job.make(Muon{}, {{0}}, {.cut = {{job.parameters.front(), {.group = {.size = 4}, .whole = whole}}}});
    job.step();
    return job.step();
  };
  Events rows{4096, 2048, 2, 2, 2, 2, -2, -2, 2, -2, -2, -2};
  for (int i = 0; i < 5; ++i) {
    rows.insert(rows.end(), {2048, 8192, 8192, -8192, -2048, 32, -8192});
    if (i > 0) rows.push_back(-32);
    rows.insert(rows.end(), {128, 32, -128});
    if (i > 0) rows.push_back(-32);
    rows.insert(rows.end(), {8192, 2048, -8192, -2048});
  }
  rows.insert(rows.end(), {-32, -32, -4096, -2048});
  CHECK(second_step({2, 512}, 8) == rows);

  Events columns{4096, 2048, 2, 2, 2, 2, -2, -2, 2, -2, -2, -2};
  for (int i = 0; i < 5; ++i) {
    columns.push_back(128);
    if (i > 0) columns.push_back(-128);
    columns.insert(columns.end(), {128, 128, -128});
    if (i > 0) columns.push_back(-128);
    columns.insert(columns.end(), {128, 2048, -128, -2048});
  }
  columns.insert(columns.end(), {-128, -128, -4096, -2048});
  CHECK(second_step({128, 8}, 512) == columns);
}
