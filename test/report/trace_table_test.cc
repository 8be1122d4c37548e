#include "report/trace_table.h"

#include <doctest/doctest.h>

#include "plan/gpu_catalogue.h"
#include "trace/assemble.h"
#include "trace/records.h"

namespace qlp {
namespace {

TraceReport report(const std::string& text, int code = 0) {
  TraceSetup setup{.command = {"python", "train.py"}, .cluster = {}, .played_rank = {}};
  setup.cluster.gpu = *find_gpu("A100 SXM4 80GB");
  return assemble(setup, {*read_probe_record(text, "x")},
                  {.how = RunEnd::ended, .end = {.code = code, .signal = 0}, .message = {}, .output = {}});
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("report/trace_table: of phases alike the first and those that need more, with -v all") {
  const std::string brief = trace_table(report(linear_record()));
  CHECK(has(brief, "\nmicro1.forward "));
  CHECK(has(brief, "\nmicro2.forward "));  // larger, as the workspaces are there
  CHECK_FALSE(has(brief, "\nmicro2.backward "));
  CHECK(has(trace_table(report(linear_record()), {.verbose = true}), "\nmicro2.backward "));
}

TEST_CASE("report/trace_table: GPU, verdict, equation, inventory, answers") {
  const std::string text = trace_table(report(linear_record()));
  CHECK(has(text, "python train.py\non a null A100 SXM4 80GB, 79.25 GiB; torch 2.8.0+cu128\n"));
  CHECK(has(text, "\nfits\n"));
  CHECK(has(text, "device 0.60 = reserved 0.02 + cuda_context 0.42"));
  CHECK(has(text, "  workspace 16.250\n"));
  CHECK(has(text, "train.py:7 (<module>): item float = 0.02, 2 times"));
}

TEST_CASE("report/trace_table: out of memory in PyTorch's words, and a failure without a verdict") {
  const std::string phases = torch_event("2.8.0", "12.8") + phase_event("load", "load", "1");
  const std::string full = R"({"event": "exception", "type": "E", "message": "CUDA out of memory.", )"
                           R"("out_of_memory": true})"
                           "\n";
  CHECK(has(trace_table(report(phases + full, 1)), "does not fit: out of memory\nCUDA out of memory.\n"));
  CHECK(has(trace_table(report(phases, 1)), "no verdict: the program failed\nit ended with exit status 1"));
}

}  // namespace qlp
