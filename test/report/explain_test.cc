#include "report/explain.h"

#include <doctest/doctest.h>

#include "report/sample_report.h"

namespace qlp {

TEST_CASE("report/explain: timeline, categories and inventory of the peak") {
  const auto text = explain_text(sample_report(), "single");
  REQUIRE(text);
  CHECK(*text == R"(tiny, QLoRA nf4 r 16, 1 x 128 tokens, 8 x H100 SXM5 80GB
plan single, rank 0

phase            peak allocated MiB  peak reserved MiB  held allocated MiB  held reserved MiB  peak host MiB
load                          0.001              2.000               0.001              2.000       5120.000
micro1.backward           59900.000          60000.000               0.001              2.000          0.000

GiB: device 59.27 = reserved 58.59 + cuda_context 0.52 + library_overhead 0.16
  headroom 18.33 = capacity 79.18 - margin 1.58 - device 59.27

category     allocated MiB        bytes
parameters       59899.996  62809698304
activations          0.004         4096
sum              59900.000  62809702400

peak 62809701400 bytes (59899.999 MiB) requested, 59900.000 MiB allocated, 59900.000 MiB active, 60000.000 MiB reserved: micro1.backward
       0.008 MiB in    2 blocks (2x4000)  bnb::quantize_4bit < model.layers.*.mlp.up_proj [weight]  {parameters}
       0.002 MiB in    2 blocks (2x1024)  aten::mul < model.layers.*.mlp  {activations}
)");
}

TEST_CASE("report/explain: one phase, one rank") {
  const auto text = explain_text(sample_report(), "fsdp2", {.phase = "micro1.backward", .rank = 0});
  REQUIRE(text);
  CHECK(text->find("plan fsdp2, rank 0\n") != std::string::npos);
  CHECK(text->find("reserved: micro1.backward\n") != std::string::npos);
  CHECK(text->find("peak reserved MiB") == std::string::npos);
}

TEST_CASE("report/explain: host memory of the node, where it is known") {
  const auto text = explain_text(sample_report(), "fsdp2-no-reshard");
  REQUIRE(text);
  CHECK(text->find("  host 21.00 per node, most in load: ") != std::string::npos);
  CHECK(explain_text(sample_report(), "single")->find("per node") == std::string::npos);
}

TEST_CASE("report/explain: small places are counted") {
  const auto text = explain_text(sample_report(), "single", {.top = 1});
  REQUIRE(text);
  CHECK(text->ends_with("  and 1 smaller places\n"));
}

TEST_CASE("report/explain: wrong names are answered with the right ones") {
  const auto plan = explain_text(sample_report(), "fsdp3");
  REQUIRE_FALSE(plan);
  CHECK(plan.error()[0].code == "unknown-plan");
  CHECK(plan.error()[0].hint == "did you mean fsdp2?");
  const auto phase = explain_text(sample_report(), "single", {.phase = "zzz"});
  REQUIRE_FALSE(phase);
  CHECK(phase.error()[0].hint == "known: load, micro1.backward");
  CHECK(explain_text(sample_report(), "fsdp2", {.rank = 3}).error()[0].code == "unknown-rank");
  CHECK(explain_text(sample_report(), "fsdp1-full-shard").error()[0].code == "plan-cannot-run");
}

}  // namespace qlp
