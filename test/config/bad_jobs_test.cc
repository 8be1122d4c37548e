// Every file of test/data/bad_jobs, with the errors that it must give: test/data/bad_jobs/expected.txt, a line for
// each, "FILE:LINE:COLUMN CODE KEY_PATH" (a dash for no key path), in the order in which they are told.
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "config/job_reader.h"

using namespace qlp;

namespace {

const std::string kFolder = "test/data/bad_jobs/";

std::string line_of(const Diagnostic& d) {
  auto file = d.position.file;
  if (file.starts_with(kFolder)) file.erase(0, kFolder.size());
  std::ostringstream line;
  line << file << ':' << d.position.line << ':' << d.position.column << ' ' << d.code << ' '
       << (d.key_path.empty() ? "-" : d.key_path) << (d.severity == Severity::error ? "" : " warning");
  return line.str();
}

/// The lines of the manifest by job: those of a file that a job names come after a line of that job, indented.
std::map<std::string, std::vector<std::string>> manifest() {
  std::map<std::string, std::vector<std::string>> jobs;
  std::ifstream stream(kFolder + "expected.txt");
  std::string line, job;
  while (std::getline(stream, line)) {
    if (line.empty() || line.front() == '#') continue;
    if (line.back() == '{') {
      job = line.substr(0, line.size() - 2);
    } else if (line != "}") {
      jobs[job].push_back(line.substr(2));
    }
  }
  return jobs;
}

}  // namespace

TEST_CASE("config/bad_jobs: each gives its errors, all at once, at their places") {
  const DiskFiles files;
  auto expected = manifest();
  for (const auto& name : files.list(kFolder)) {
    if (!name.ends_with(".yaml")) continue;
    CAPTURE(name);
    const auto job = read_job_file(kFolder + name);
    REQUIRE_FALSE(job);
    std::vector<std::string> told;
    for (const auto& error : job.error()) {
      told.push_back(line_of(error));
      CHECK_FALSE(error.message.empty());
    }
    CHECK(told == expected[name]);
    expected.erase(name);
  }
  CHECK(expected.empty());
}
