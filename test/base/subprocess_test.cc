#include "base/subprocess.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <thread>

#include <doctest/doctest.h>

namespace qlp {
namespace {

Program shell(const std::string& script) {
  return {.arguments = {"/bin/sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
}

/// Everything that comes until nobody writes any more.
std::string read_all(FileDescriptor& file) {
  std::string text;
  pollfd ready{.fd = file.number(), .events = POLLIN, .revents = 0};
  while (poll(&ready, 1, 10'000) > 0 && read_available(file, text)) {
  }
  return text;
}

std::string first_line(FileDescriptor& file) {
  std::string line;
  while (line.find('\n') == std::string::npos) read_available(file, line);
  return line;
}

ProgramEnd wait(Subprocess& program) {
  for (;;) {
    if (const auto end = program.poll()) return *end;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

/// A zombie, which only waits for its parent to look, is gone.
bool is_running(pid_t pid) {
  FileDescriptor file{open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC)};
  std::string text;
  if (!file.is_open()) return false;
  read_available(file, text);
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.substr(name_end + 2, 1) != "Z";
}

bool ends_soon(pid_t pid) {
  for (int i = 0; i < 500 && is_running(pid); ++i) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  return !is_running(pid);
}

TEST_CASE("base/subprocess: a program's end is its exit status or its signal") {
  auto seven = Subprocess::start(shell("exit 7"));
  REQUIRE(seven);
  CHECK(wait(*seven).text() == "exit status 7");
  auto killed = Subprocess::start(shell("kill -9 $$"));
  REQUIRE(killed);
  CHECK(wait(*killed) == ProgramEnd{.code = 0, .signal = SIGKILL});
  CHECK(killed->poll()->text() == "signal 9 (Killed)");
}

TEST_CASE("base/subprocess: a program that does not exist says so") {
  const auto none = Subprocess::start({.arguments = {"/none/program"}});
  REQUIRE_FALSE(none);
  CHECK(none.error() == "/none/program: No such file or directory");
  const auto nowhere = Subprocess::start({.arguments = {"/bin/true"}, .directory = "/none"});
  REQUIRE_FALSE(nowhere);
}

TEST_CASE("base/subprocess: files arrive under the numbers asked for, and standard ones are closed") {
  auto one = open_pipe(), two = open_pipe();
  REQUIRE((one && two));
  // Crossed: each pipe under the number that the other has here.
  Program program = shell("echo first >&" + std::to_string(two->write_end.number()) + "; echo second >&" +
                          std::to_string(one->write_end.number()) + "; cat; echo nowhere");
  program.files = {{two->write_end.number(), one->write_end.number()},
                   {one->write_end.number(), two->write_end.number()}};
  auto started = Subprocess::start(program);
  REQUIRE(started);
  one->write_end.close();
  two->write_end.close();
  CHECK(read_all(one->read_end) == "first\n");
  CHECK(read_all(two->read_end) == "second\n");
  CHECK(wait(*started).succeeded());
}

TEST_CASE("base/subprocess: it runs in the environment and the directory that it is given") {
  auto output = open_pipe();
  REQUIRE(output);
  Program program = shell("echo $NAME; pwd");
  program.environment = {"NAME=value"};
  program.directory = "/";
  program.files = {{1, output->write_end.number()}};
  auto started = Subprocess::start(program);
  REQUIRE(started);
  output->write_end.close();
  CHECK(read_all(output->read_end) == "value\n/\n");
}

TEST_CASE("base/subprocess: what a program has started dies with it") {
  auto output = open_pipe();
  REQUIRE(output);
  Program program = shell("sleep 600 & echo $!; wait");
  program.files = {{1, output->write_end.number()}};
  pid_t grandchild = 0;
  SUBCASE("killed") {
    auto started = Subprocess::start(program);
    REQUIRE(started);
    grandchild = std::stoi(first_line(output->read_end));
    CHECK(is_running(grandchild));
    CHECK(started->kill().signal == SIGKILL);
  }
  SUBCASE("ended by itself") {
    program.arguments.back() = "sleep 600 & echo $!";
    auto started = Subprocess::start(program);
    REQUIRE(started);
    CHECK(wait(*started).succeeded());
    output->write_end.close();
    grandchild = std::stoi(read_all(output->read_end));
  }
  SUBCASE("out of scope") {
    auto started = Subprocess::start(program);
    REQUIRE(started);
    grandchild = std::stoi(first_line(output->read_end));
  }
  CHECK(ends_soon(grandchild));
}

TEST_CASE("base/subprocess: what has left a program's group and session dies with it too") {
  auto output = open_pipe();
  REQUIRE(output);
  Program program = shell("setsid sleep 600 & echo $!");
  program.files = {{1, output->write_end.number()}};
  SUBCASE("ended by itself") {}
  SUBCASE("killed") { program.arguments.back() += "; wait"; }
  auto started = Subprocess::start(program);
  REQUIRE(started);
  const pid_t grandchild = std::stoi(first_line(output->read_end));
  if (program.arguments.back().ends_with("wait")) {
    CHECK(started->kill().signal == SIGKILL);
  } else {
    CHECK(wait(*started).succeeded());
  }
  CHECK_FALSE(is_running(grandchild));
}

TEST_CASE("base/subprocess: it and all that it started die with the thread that started it") {
  auto output = open_pipe();
  REQUIRE(output);
  Program program = shell("setsid sleep 600 & echo $!; wait");
  program.files = {{1, output->write_end.number()}};
  pid_t pid = 0;
  std::string line;
  std::optional<Result<Subprocess, std::string>> started;
  std::thread([&] {
    started.emplace(Subprocess::start(program));
    if (!*started) return;
    pid = (*started)->pid();
    line = first_line(output->read_end);
  }).join();
  REQUIRE(pid > 0);
  CHECK(ends_soon(pid));
  CHECK(ends_soon(std::stoi(line)));
}

}  // namespace
}  // namespace qlp
