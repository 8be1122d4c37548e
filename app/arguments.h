// What the command line asks for, as values.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "app/arguments_of_jobs.h"
#include "app/arguments_of_runs.h"
#include "app/arguments_of_tools.h"

namespace qlp::app {

/// In the order of the help.
using Arguments =
    std::variant<EstimateArguments, SearchArguments, ExplainArguments, CheckArguments, ExportArguments, VerifyArguments,
                 TraceArguments, SparseWeightsArguments, EnvArguments, GpusArguments, ModelsArguments, SchemaArguments>;

/// Help or the version was asked for: text for stdout.
struct Information {
  std::string text;
};

/// The command line makes no sense: sentences for stderr.
struct UsageError {
  std::vector<std::string> mistakes;
  std::string help;  ///< the command whose --help tells more: "qlora-plan estimate"
};

std::variant<Arguments, Information, UsageError> parse_arguments(int argc, const char* const* argv);

}  // namespace qlp::app
