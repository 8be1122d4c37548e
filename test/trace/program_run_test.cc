#include "trace/program_run.h"

#include <chrono>
#include <csignal>

#include <doctest/doctest.h>

namespace qlp {
namespace {

using std::chrono::milliseconds;

milliseconds now() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

Program shell(const std::string& script) {
  return {.arguments = {"/bin/sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}, .directory = {}, .files = {}};
}

ProgramOptions options(milliseconds patience = milliseconds{20'000}) {
  ProgramOptions out;
  out.patience = patience;
  out.grace = milliseconds{300};
  out.clock = now;
  return out;
}

}  // namespace

TEST_CASE("trace/program_run: how it ended, and its output as it comes on either stream") {
  ProgramOptions watching = options();
  std::string seen;
  watching.on_output = [&](std::string_view text) { seen += text; };
  const ProgramRun run = run_program(shell("echo out; echo err >&2; exit 3"), watching);
  CHECK(run.how == RunEnd::ended);
  CHECK(run.end == ProgramEnd{.code = 3, .signal = 0});
  CHECK(seen == "out\nerr\n");
  CHECK(run.output == "out\nerr");
  CHECK(run_program(shell("kill -SEGV $$"), options()).end.signal == SIGSEGV);
}

TEST_CASE("trace/program_run: the last twenty lines are kept") {
  const ProgramRun run = run_program(shell("for i in $(seq 100); do echo line $i; done"), options());
  CHECK(run.output.starts_with("line 81\n"));
  CHECK(run.output.ends_with("line 100"));
  CHECK(run_program(shell("true"), options()).output.empty());
  CHECK(run_program(shell("echo; echo x"), options()).output == "\nx");
}

TEST_CASE("trace/program_run: a program that is not there") {
  Program none = shell("");
  none.arguments = {"no-such-program-here"};
  const ProgramRun run = run_program(none, options());
  CHECK(run.how == RunEnd::not_started);
  CHECK(run.message == "no-such-program-here: No such file or directory");
}

TEST_CASE("trace/program_run: one that gives no sign of life is asked where it is, and ended") {
  const ProgramRun run = run_program(shell("trap 'echo at line 7' USR2; echo begun; while :; do sleep 0.05; done"),
                                     options(milliseconds{300}));
  CHECK(run.how == RunEnd::hung);
  CHECK(run.output.starts_with("begun\n"));
  CHECK(run.output.ends_with("\nat line 7"));
}

TEST_CASE("trace/program_run: progress keeps a silent program alive") {
  ProgramOptions moving = options(milliseconds{300});
  std::uint64_t ticks = 0;
  moving.progress = [&] { return ++ticks; };
  CHECK(run_program(shell("sleep 0.8"), moving).how == RunEnd::ended);
}

TEST_CASE("trace/program_run: an interruption ends what it started too") {
  ProgramOptions interrupted = options();
  interrupted.interrupted = [] { return true; };
  const auto before = now();
  const ProgramRun run = run_program(shell("trap '' TERM; sleep 30 & wait; sleep 30"), interrupted);
  CHECK(run.how == RunEnd::interrupted);
  CHECK(now() - before < milliseconds{5'000});
}

}  // namespace qlp
