#include "report/findings.h"

#include <doctest/doctest.h>

#include "report/sample_report.h"

namespace qlp {

TEST_CASE("report/findings: each with its evidence and what its fix gives, then the counts") {
  Report report = sample_report();
  report.findings = {{.severity = Severity::error,
                      .code = "over-budget",
                      .plan = "single",
                      .message = "too much",
                      .evidence = Bytes{3ULL << 30U},
                      .fix = PricedFix{.text = "take less",
                                       .plan = "single",
                                       .peak_allocated = Bytes{1ULL << 30U},
                                       .device_used = Bytes{2ULL << 30U},
                                       .fits = true,
                                       .saving = ByteDelta{std::int64_t{2} << 30U}}},
                     {.severity = Severity::warning, .code = "b", .plan = "single", .message = "m", .hint = "h"}};
  const std::string text = findings_text(report, false);
  CHECK(text.find("error over-budget\n  too much: 3.00 GiB\n"
                  "  fix: take less: peak allocated 1.00 GiB, saves 2.00 GiB, fits\n"
                  "warning b\n  m\n  fix: h\n1 error, 1 warning, 0 notes\n") != std::string::npos);
}

}  // namespace qlp
