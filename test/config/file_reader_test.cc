#include "config/file_reader.h"

#include <algorithm>

#include <doctest/doctest.h>

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

TEST_CASE("config/file_reader: paths beside a file") {
  CHECK(path_beside("jobs/a.yaml", "m/config.json") == "jobs/m/config.json");
  CHECK(path_beside("jobs/a.yaml", "../m") == "m");
  CHECK(path_beside("a.yaml", "m") == "m");
  CHECK(path_beside("jobs/a.yaml", "/m") == "/m");
}
