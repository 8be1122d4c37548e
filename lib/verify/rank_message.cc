#include "verify/rank_message.h"

#include <cstdlib>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const LedgerFigures& figures) {
  return {figures.requested.count(), figures.allocated.count(), figures.active.count(), figures.reserved.count()};
}

Bytes bytes_of(const Json& json) { return Bytes{json.get<std::uint64_t>()}; }

LedgerFigures figures_of(const Json& json) {
  return {bytes_of(json.at(0)), bytes_of(json.at(1)), bytes_of(json.at(2)), bytes_of(json.at(3))};
}

std::optional<Bytes> optional_bytes(const Json& json, const char* key) {
  return json.contains(key) ? std::optional{bytes_of(json.at(key))} : std::nullopt;
}

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += kHexDigits[static_cast<unsigned char>(c) >> 4U];
    out += kHexDigits[static_cast<unsigned char>(c) & 15U];
  }
  return out;
}

std::string from_hex(std::string_view digits) {
  const auto value = [](char digit) {
    const auto at = kHexDigits.find(digit);
    if (at == std::string_view::npos) throw std::invalid_argument("no hexadecimal digit");
    return at;
  };
  if (digits.size() % 2 != 0) throw std::invalid_argument("half a byte");
  std::string out;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    out += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  return out;
}

Json json_of(const RankHello& hello) { return {{"type", "hello"}, {"rank", hello.rank}, {"protocol", hello.protocol}}; }
Json json_of(const RankState& state) {
  return {{"type", "state"}, {"what", state.what}, {"done", state.done}, {"of", state.of}};
}
Json json_of(const Rendezvous& rendezvous) { return {{"type", "rendezvous"}, {"id", hex(rendezvous.id)}}; }
Json json_of(const RankFailure& failure) {
  return {{"type", "failure"}, {"end", name_of(failure.end)}, {"message", failure.message}};
}

Json json_of(const MeasuredDevice& device) {
  Json out{{"name", device.name}, {"host", device.host}, {"versions", device.versions}};
  if (device.capacity) out["capacity"] = device.capacity->count();
  if (device.used_by_others) out["used_by_others"] = device.used_by_others->count();
  return out;
}

Json json_of(const RankMeasurement& measured) {
  Json out{{"type", "measurement"},          {"device", json_of(measured.device)},
           {"phases", Json::array()},        {"readings", Json::array()},
           {"communicators", Json::array()}, {"managed_state", measured.managed_state.count()}};
  for (const MeasuredPhase& phase : measured.phases)
    out["phases"].push_back({{"name", phase.name}, {"peak", json_of(phase.peak)}, {"held", json_of(phase.held)}});
  for (const DeviceReading& reading : measured.readings) {
    Json entry{{"point", reading.point},
               {"used", reading.used.count()},
               {"segments", reading.segments.count()},
               {"source", reading.source}};
    if (reading.by_process) entry["by_process"] = reading.by_process->count();
    out["readings"].push_back(std::move(entry));
  }
  for (const MeasuredCommunicator& communicator : measured.communicators)
    out["communicators"].push_back({{"ranks", communicator.ranks},
                                    {"ranks_per_node", communicator.ranks_per_node},
                                    {"all_reduce", communicator.all_reduce},
                                    {"bytes", communicator.bytes.count()}});
  // JSON has no NaN, and a loss may be one: as texts, exactly.
  const auto texts = [](const std::vector<double>& values) {
    Json list = Json::array();
    for (const double value : values) list.push_back(exact_number(value));
    return list;
  };
  out["losses"] = texts(measured.losses);
  out["gradient_norms"] = texts(measured.gradient_norms);
  out["skipped_steps"] = measured.skipped_steps;
  return out;
}

MeasuredDevice device_of(const Json& json) {
  return {.name = json.at("name"),
          .host = json.at("host"),
          .capacity = optional_bytes(json, "capacity"),
          .used_by_others = optional_bytes(json, "used_by_others"),
          .versions = json.at("versions")};
}

RankMeasurement measurement_of(const Json& json) {
  RankMeasurement out;
  out.device = device_of(json.at("device"));
  for (const Json& phase : json.at("phases"))
    out.phases.push_back({phase.at("name"), figures_of(phase.at("peak")), figures_of(phase.at("held"))});
  for (const Json& reading : json.at("readings"))
    out.readings.push_back({.point = reading.at("point"),
                            .used = bytes_of(reading.at("used")),
                            .segments = bytes_of(reading.at("segments")),
                            .by_process = optional_bytes(reading, "by_process"),
                            .source = reading.at("source")});
  out.managed_state = bytes_of(json.at("managed_state"));
  for (const Json& communicator : json.at("communicators"))
    out.communicators.push_back({communicator.at("ranks"), communicator.at("ranks_per_node"),
                                 communicator.at("all_reduce"), bytes_of(communicator.at("bytes"))});
  const auto numbers = [](const Json& list) {
    std::vector<double> values;
    for (const Json& text : list)
      values.push_back(std::strtod(text.get<std::string>().c_str(), nullptr));  // of the smallest stod throws
    return values;
  };
  out.losses = numbers(json.at("losses"));
  out.gradient_norms = numbers(json.at("gradient_norms"));
  out.skipped_steps = json.at("skipped_steps").get<std::vector<std::int64_t>>();
  return out;
}

RankEnd end_of(const std::string& word) {
  for (const auto& row : kEnumNames<RankEnd>)
    if (row.name == word) return row.value;
  throw std::invalid_argument("no end of a rank is called " + word);
}

RankMessage message_of(const Json& json) {
  const std::string type = json.at("type");
  if (type == "hello") return RankHello{json.at("rank"), json.at("protocol")};
  if (type == "state") return RankState{json.at("what"), json.at("done"), json.at("of")};
  if (type == "rendezvous") return Rendezvous{from_hex(json.at("id").get<std::string>())};
  if (type == "failure") return RankFailure{end_of(json.at("end")), json.at("message")};
  if (type == "measurement") return measurement_of(json);
  throw std::invalid_argument("no message is of type " + type);
}

}  // namespace

std::string to_line(const RankMessage& message) {
  const Json json = std::visit([](const auto& m) { return json_of(m); }, message);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RankMessage, std::string> parse_line(std::string_view line) {
  try {
    return message_of(Json::parse(line));
  } catch (const std::exception& error) {
    return Unexpected{std::string{error.what()} + " in: " + std::string{line.substr(0, 200)}};
  }
}

std::optional<std::string> LineBuffer::next() {
  const auto end = text_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = text_.substr(0, end);
  text_.erase(0, end + 1);
  return line;
}

}  // namespace qlp
