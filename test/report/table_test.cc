#include "report/table.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "report/sample_report.h"

namespace qlp {

TEST_CASE("report/table: a row for each plan, the best first, then the recommendation and the reasons") {
  CHECK(report_table(sample_report()) == R"(tiny, QLoRA nf4 r 16, 1 x 128 tokens, 8 x H100 SXM5 80GB
1,234,567 parameters, 4,096 trainable

plan              verdict        peak phase  allocated GiB  reserved GiB  device GiB  headroom GiB  host GiB
fsdp2-no-reshard  fits           backward            68.26         68.36       69.82          7.78     21.00
fsdp2             fits, tightly  backward            76.12         76.13       77.59          0.00
single            fits           backward            58.50         58.59       59.27         18.33
ddp               does not fit   backward            87.79         87.89       89.63        -12.04
fsdp1-full-shard  cannot run

recommended: fsdp2-no-reshard on 8 GPUs with 71.41 GiB each
fsdp2-no-reshard in GiB: device 69.82 = reserved 68.36 + cuda_context 0.52 + library_overhead 0.16 + nccl 0.79
  headroom 7.78 = capacity 79.18 - margin 1.58 - device 69.82
  host 21.00 per node, most in load: rank 0 up to 10.00 (pinned 2.00), others up to 1.00 each,
  processes 8 x 0.50; 4.00 of files in the page cache are not in it

fsdp2: fits only because PyTorch frees its cached segments and tries again when the device is full;
  without a limit it would reserve 76.22 GiB; steps are slower while this happens; a smaller micro
  batch, shorter sequences or expandable_segments:True ask for less
single: runs on one of the job's 8 GPUs, the others are idle
fsdp1-full-shard: uint8 storage cannot be sharded (set quant_storage to bfloat16)
)");
}

TEST_CASE("report/table: brief is the rows alone") {
  const std::string text = report_table(sample_report(), {.brief = true});
  CHECK(text.starts_with("plan "));
  CHECK(std::count(text.begin(), text.end(), '\n') == 6);
}

TEST_CASE("report/table: verbose names defaults and the source of every term") {
  const std::string text = report_table(sample_report(), {.verbose = true});
  CHECK(text.find("adapter.lora_dropout: lora_dropout is 0") != std::string::npos);
  CHECK(text.find("NCCL source") != std::string::npos);
  CHECK(text.find("CUDA's total, measured (catalogue)") != std::string::npos);
}

TEST_CASE("report/table: colours only where asked for") {
  CHECK(report_table(sample_report()).find('\x1b') == std::string::npos);
  CHECK(report_table(sample_report(), {.colors = true}).find("\x1b[32mfits\x1b[0m") != std::string::npos);
}

TEST_CASE("report/table: says when nothing fits") {
  Report report = sample_report();
  report.recommended.reset();
  report.resources.reset();
  for (auto& plan : report.plans) plan.fits = false;
  CHECK(report_table(report).find("nothing fits\n") != std::string::npos);
}

TEST_CASE("report/table: a searched requirement has its column") {
  Report report = sample_report();
  report.plans[0].ranks[0].peak.required_reserved = Bytes{50'000ULL << 20};
  judge(report.plans[0], report.job.cluster, std::nullopt);
  const std::string text = report_table(report);
  CHECK(text.find("required GiB") != std::string::npos);
  CHECK(text.find("49.50") != std::string::npos);
}

}  // namespace qlp
