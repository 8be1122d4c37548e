#include "config/file_reader.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <pthread.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <doctest/doctest.h>

#include "base/file_descriptor.h"

using namespace qlp;

TEST_CASE("config/file_reader: what is on the disk") {
  const DiskFiles files;
  CHECK(files.kind_of("configs") == FileReader::Kind::directory);
  CHECK(files.kind_of("configs/tiny-qlora.yaml") == FileReader::Kind::file);
  CHECK(files.kind_of("configs/none") == FileReader::Kind::missing);
  CHECK(files.read("configs/tiny-qlora.yaml", 7).value() == "# A mod");
  CHECK_FALSE(files.read("configs", 7));
  CHECK(files.read("configs/none", 7).error() == "there is no such file");
  const auto names = files.list("configs");
  CHECK(std::ranges::is_sorted(names));
  CHECK(std::ranges::find(names, "models") != names.end());
  CHECK(files.list("configs/none").empty());
}

TEST_CASE("config/file_reader: a pipe is read to its end, and one that nobody writes into is not waited for") {
  const auto read = [](const Pipe& pipe) {
    return DiskFiles{std::chrono::milliseconds{20}}.read("/dev/fd/" + std::to_string(pipe.read_end.number()), 100);
  };
  Pipe written = std::move(open_pipe().value());
  REQUIRE(write_all(written.write_end.number(), "schema: 1\n"));
  written.write_end.close();
  CHECK(read(written).value() == "schema: 1\n");

  Pipe late = std::move(open_pipe().value());
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{60});
    write_all(late.write_end.number(), "late");
    late.write_end.close();
  });
  CHECK(read(late).value() == "late");
  writer.join();

  const auto fifo = (std::filesystem::temp_directory_path() / ("qlp-fifo-" + std::to_string(getpid()))).string();
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  constexpr const char* kNobody = "it is a pipe into which nobody writes";
  CHECK(DiskFiles{std::chrono::milliseconds{20}}.read(fifo, 100).error() == kNobody);

  struct sigaction interrupts {};
  struct sigaction before {};
  interrupts.sa_handler = [](int) {};
  sigaction(SIGUSR1, &interrupts, &before);
  const pthread_t reader = pthread_self();
  std::thread interrupter([reader] {
    std::this_thread::sleep_for(std::chrono::milliseconds{30});
    pthread_kill(reader, SIGUSR1);
  });
  CHECK(DiskFiles{std::chrono::milliseconds{150}}.read(fifo, 100).error() == kNobody);
  interrupter.join();
  sigaction(SIGUSR1, &before, nullptr);
  std::filesystem::remove(fifo);
}

TEST_CASE("config/file_reader: paths beside a file") {
  CHECK(path_beside("jobs/a.yaml", "m/config.json") == "jobs/m/config.json");
  CHECK(path_beside("jobs/a.yaml", "../m") == "m");
  CHECK(path_beside("a.yaml", "m") == "m");
  CHECK(path_beside("jobs/a.yaml", "/m") == "/m");
}
