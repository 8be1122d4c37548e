// The report for people: a row for each plan, then the reasons.
#pragma once

#include <string>

#include "estimate/report.h"

namespace qlp {

struct TableOptions {
  bool colors = false;
  bool brief = false;    ///< the rows alone
  bool verbose = false;  ///< with the defaults used and the source of every term
};

std::string report_table(const Report& report, const TableOptions& options = {});

/// The job in one line: "llama-3.1-8b, QLoRA nf4 r 16, 1 x 4096 tokens, 8 x H100 SXM5 80GB".
std::string job_line(const JobSpec& job);

}  // namespace qlp
