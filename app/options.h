// The options of each command: their words, what they may be, and where their values go.
#pragma once

#include <CLI/CLI.hpp>

#include "app/arguments.h"

namespace qlp::app {

CLI::App& add_command(CLI::App& root, EstimateArguments& a);
CLI::App& add_command(CLI::App& root, SearchArguments& a);
CLI::App& add_command(CLI::App& root, ExplainArguments& a);
CLI::App& add_command(CLI::App& root, CheckArguments& a);
CLI::App& add_command(CLI::App& root, ExportArguments& a);
CLI::App& add_command(CLI::App& root, VerifyArguments& a);
CLI::App& add_command(CLI::App& root, TraceArguments& a);
CLI::App& add_command(CLI::App& root, SparseWeightsArguments& a);
CLI::App& add_command(CLI::App& root, EnvArguments& a);
CLI::App& add_command(CLI::App& root, GpusArguments& a);
CLI::App& add_command(CLI::App& root, ModelsArguments& a);
CLI::App& add_command(CLI::App& root, SchemaArguments& a);

}  // namespace qlp::app
