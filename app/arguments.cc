#include "app/arguments.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/options.h"
#include "base/text.h"

namespace qlp::app {
namespace {

template <class V>
struct TupleOf;
template <class... A>
struct TupleOf<std::variant<A...>> {
  using type = std::tuple<A...>;
};

class CommandLine {
 public:
  CommandLine() : root_{"Does this fine-tuning job fit, under which plan, and why?", "qlora-plan"} {
    root_.set_help_flag("-h,--help", "Print this help and exit");
    root_.set_version_flag("--version", "qlora-plan " QLP_VERSION, "Print the version and exit");
    root_.require_subcommand(0, 1);
    root_.get_formatter()->column_width(26);
    root_.footer(
        "Each command has its own --help.\n\n"
        "Examples:\n"
        "  qlora-plan estimate job.yaml             every plan of the job, the best first\n"
        "  qlora-plan explain job.yaml --plan fsdp2 what is alive at the peak\n\n"
        "Exit status: 0 it fits, 1 nothing fits, 2 usage or input error, 3 the environment\n"
        "cannot do it, 4 internal error, 130 interrupted.");
    std::apply([&](auto&... each) { commands_ = {&add_command(root_, each)...}; }, values_);
  }

  std::variant<Arguments, Information, UsageError> parse(std::vector<std::string> words) {
    if (!words.empty() && !words.front().starts_with('-') &&
        std::ranges::count(names(), std::string_view{words.front()}) == 0)
      return unknown_command(words.front());
    take_program(words);
    // CLI11 would take the next word as the value; ours are optional and only ever follow a '='.
    std::ranges::replace(words, std::string{"--json"}, std::string{"--json=-"});
    std::ranges::replace(words, std::string{"--from-python"}, std::string{"--from-python=python3"});
    std::ranges::reverse(words);  // as CLI11 takes them
    try {
      auto mistakes = parse_all(std::move(words));
      if (!mistakes.empty()) return UsageError{std::move(mistakes), help_name()};
    } catch (const CLI::CallForHelp&) {
      return Information{&chosen() == &root_ ? root_.help() : chosen().help("qlora-plan")};
    } catch (const CLI::CallForVersion&) {
      return Information{root_.version() + "\n"};
    }
    if (&chosen() == &root_) return UsageError{{"no command: commands are " + join(names())}, "qlora-plan"};
    Arguments parsed = arguments(std::make_index_sequence<std::variant_size_v<Arguments>>{});
    if (const auto* trace = std::get_if<TraceArguments>(&parsed)) {
      if (trace->program.empty())
        return UsageError{{"no program to trace: write it after --; qlora-plan trace -- python train.py"}, help_name()};
      if (trace->rank >= trace->world_size.value_or(1))
        return UsageError{{"--rank: expected less than --world-size"}, help_name()};
    }
    const auto& common = std::visit([](const auto& a) -> const CommonArguments& { return a.common; }, parsed);
    if (common.quiet && common.verbose) return UsageError{{"--quiet and --verbose exclude each other"}, help_name()};
    return parsed;
  }

 private:
  /// Returns what is wrong. CLI11 stops at the first mistake: that option is left out then, and the rest read again.
  std::vector<std::string> parse_all(std::vector<std::string> words) {
    std::vector<std::string> mistakes;
    while (true) {
      try {
        root_.parse(std::vector(words));
        return mistakes;
      } catch (const CLI::ValidationError& error) {
        const std::string mistake = error.what();
        if (std::ranges::find(mistakes, mistake) == mistakes.end()) mistakes.push_back(mistake);
        if (!leave_out(mistake.substr(0, mistake.find(':')), words)) return mistakes;
      } catch (const CLI::ExtrasError& error) {
        const std::size_t before = mistakes.size();
        add_unknown_options(mistakes);
        if (mistakes.size() == before) mistakes.emplace_back(error.what());
        return mistakes;
      } catch (const CLI::Success&) {
        throw;  // help or the version, which the caller gives
      } catch (const CLI::ParseError& error) {
        mistakes.emplace_back(error.what());
        add_unknown_options(mistakes);
        return mistakes;
      }
    }
  }

  /// Of an option in the reversed words. False where it is not there under this name.
  static bool leave_out(const std::string& option, std::vector<std::string>& words) {
    const auto is_it = [&](const std::string& word) { return word == option || word.starts_with(option + "="); };
    const auto at = std::ranges::find_if(words, is_it);
    if (at == words.end()) return false;
    const bool has_value_apart = *at == option && at != words.begin();
    words.erase(has_value_apart ? at - 1 : at, at + 1);
    return true;
  }

  /// What comes after -- belongs to the traced program, whatever it looks like.
  void take_program(std::vector<std::string>& words) {
    if (words.empty() || words.front() != "trace") return;
    const auto end = std::ranges::find(words, "--");
    if (end == words.end()) return;
    std::get<TraceArguments>(values_).program.assign(end + 1, words.end());
    words.erase(end, words.end());
  }

  const CLI::App& chosen() const {
    const auto commands = root_.get_subcommands();
    return commands.empty() ? root_ : *commands.front();
  }

  std::string help_name() const { return &chosen() == &root_ ? "qlora-plan" : "qlora-plan " + chosen().get_name(); }

  std::vector<std::string_view> names() const {
    std::vector<std::string_view> names;
    for (const CLI::App* command : commands_) names.push_back(command->get_name());
    return names;
  }

  UsageError unknown_command(const std::string& word) const {
    return {{"unknown command '" + word + "': commands are " + join(names()) + meant(closest(word, names()))},
            "qlora-plan"};
  }

  static std::string meant(std::optional<std::string_view> near) {
    return near ? "; did you mean " + std::string{*near} + "?" : "";
  }

  void add_unknown_options(std::vector<std::string>& mistakes) const {
    std::vector<std::string> names;
    for (const auto* known : chosen().get_options())
      for (const auto& long_name : known->get_lnames()) names.push_back("--" + long_name);
    const std::vector<std::string_view> views{names.begin(), names.end()};
    for (const std::string& word : root_.remaining(true)) {
      if (!word.starts_with('-')) continue;
      const std::string name = word.substr(0, word.find('='));
      mistakes.push_back("unknown option '" + name + "'" + meant(closest(name, views)));
    }
  }

  template <std::size_t... I>
  Arguments arguments(std::index_sequence<I...>) {
    Arguments chosen;
    ((*commands_[I] ? void(chosen = std::get<I>(values_)) : void()), ...);
    return chosen;
  }

  CLI::App root_;
  TupleOf<Arguments>::type values_;
  std::array<CLI::App*, std::variant_size_v<Arguments>> commands_{};
};

}  // namespace

std::variant<Arguments, Information, UsageError> parse_arguments(int argc, const char* const* argv) {
  return CommandLine{}.parse({argv + std::min(argc, 1), argv + argc});
}

}  // namespace qlp::app
