// The commands. Each takes its arguments, writes its result, and says how the program ends.
#pragma once

#include "app/arguments.h"
#include "app/exit_code.h"

namespace qlp::app {

ExitCode run_command(const EstimateArguments& arguments);
ExitCode run_command(const SearchArguments& arguments);
ExitCode run_command(const ExplainArguments& arguments);
ExitCode run_command(const CheckArguments& arguments);
ExitCode run_command(const ExportArguments& arguments);
ExitCode run_command(const SparseWeightsArguments& arguments);
ExitCode run_command(const EnvArguments& arguments);
ExitCode run_command(const VerifyArguments& arguments);
ExitCode run_command(const TraceArguments& arguments);
ExitCode run_command(const GpusArguments& arguments);
ExitCode run_command(const ModelsArguments& arguments);
ExitCode run_command(const SchemaArguments& arguments);

/// Parses, runs, and turns every failure into a message and an exit code.
ExitCode run(int argc, const char* const* argv);

}  // namespace qlp::app
