// What commands and options are made with: groups of options that several commands take, words of enums, sizes.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "app/common_arguments.h"
#include "app/validators.h"

namespace qlp::app {

/// A command with the options that all have.
CLI::App& new_command(CLI::App& root, const std::string& name, const std::string& what, const std::string& examples,
                      CommonArguments& common);

/// The job file, and what may be set in its place.
void add_job(CLI::App& command, JobArguments& job);
void add_machine(CLI::App& command, JobArguments& job);

void add_size(CLI::App& command, const char* name, const char* what, std::optional<Bytes>& size);

/// An option or argument that takes such a word. Choice: E, or optional<E>.
template <NamedEnum E, class Choice>
CLI::Option* add_choice(CLI::App& command, const char* name, Choice& choice, const char* what) {
  const auto choose = [&choice](const std::string& word) { choice = *from_name<E>(word); };
  return command.add_option_function<std::string>(name, choose, what)->check(one_of(kWordsOf<E>));
}

}  // namespace qlp::app
