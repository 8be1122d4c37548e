#include "trace/probe_record.h"

#include <doctest/doctest.h>

#include "trace/records.h"

namespace qlp {

TEST_CASE("trace/probe_record: a run is read whole") {
  const auto record = read_probe_record(linear_record(), "linear.jsonl");
  REQUIRE(record);
  CHECK(record->torch == "2.8.0+cu128");
  CHECK(record->cuda == "12.8");
  CHECK(record->command.at(1) == "train.py");
  REQUIRE(record->phases.size() == 11);
  CHECK(record->phases.front().name == "load");
  CHECK(record->phases.at(2).phase == "forward");
  CHECK(record->phases.at(2).peak.allocated == Bytes{9847808});
  CHECK(record->phases.at(2).held.requested == Bytes{8791044});
  REQUIRE(record->answers.size() == 1);
  CHECK(record->answers.front().place == "train.py:7 (<module>)");
  CHECK(record->answers.front().count == 2);
  REQUIRE(record->inventories.size() == 1);
  CHECK(record->inventories.front().phase == "micro2.forward");
  CHECK(record->inventories.front().items.front().category == Category::workspace);
  CHECK(record->end == "exit");
  CHECK(record->versions.front().second == "2.8.0+cu128");
}

TEST_CASE("trace/probe_record: a phase that comes twice in a row is one, with the larger peak and the later rest") {
  const auto record = read_probe_record(phase_event("save", "save", "500") + phase_event("save", "save", "300") +
                                            phase_event("end", "end", "100") + phase_event("save", "save", "200"),
                                        "x");
  REQUIRE(record);
  REQUIRE(record->phases.size() == 3);
  CHECK(record->phases.at(0).peak.allocated == Bytes{500});
  CHECK(record->phases.at(0).held.allocated == Bytes{300});
  CHECK(record->phases.at(2).peak.allocated == Bytes{200});
}

TEST_CASE("trace/probe_record: what a killed process left is read up to its last whole line") {
  const std::string text = linear_record();
  const auto record = read_probe_record(text.substr(0, text.size() - 20), "x");
  REQUIRE(record);
  CHECK(record->phases.size() == 11);
  CHECK(record->end.empty());
  CHECK(read_probe_record("", "x").value().phases.empty());
}

TEST_CASE("trace/probe_record: what is no JSON is an error with its line; what is unknown is passed over") {
  const auto broken = read_probe_record(torch_event("2.8.0", "12.8") + "{\"event\": \n", "x");
  REQUIRE_FALSE(broken);
  CHECK(broken.error().front().position.line == 2);
  const auto newer = read_probe_record("{\"event\": \"weather\", \"fine\": [1, {}]}\n{\"event\": \"phase\"}\n", "x");
  REQUIRE(newer);
  CHECK(newer->phases.size() == 1);
}

}  // namespace qlp
