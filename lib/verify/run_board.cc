#include "verify/run_board.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;

constexpr milliseconds kInterval{100};

std::string file_of(std::int64_t rank) { return "rank-" + std::to_string(rank) + ".json"; }

/// Null where there is none, or none that makes sense: it may be of another version.
Json read_json(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  Json json = Json::parse(text.str(), nullptr, false);
  return json.is_object() ? json : Json{};
}

/// Whole or not at all: readers see the old file or the new one. Whether it could be written.
bool write_json(const std::string& path, const std::string& token, const Json& json) {
  const std::string temporary = path + "." + token;
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    if (!file.flush()) return false;
  }
  std::error_code status;
  std::filesystem::rename(temporary, path, status);
  return !status;
}

std::string text_of(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

bool flag_of(const Json& json, const char* key) { return json.contains(key) && json[key] == true; }

std::int64_t number_of(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_number_integer() ? json[key].get<std::int64_t>() : 0;
}

/// The last words of a rank, in those of the line to its launcher.
Json json_of(const RankRecord& record) {
  Json out{{"state", to_line(record.state)}, {"output", record.output}};
  if (record.measurement) out["measurement"] = to_line(*record.measurement);
  out["end"] = to_line(RankFailure{record.end, record.message});
  return out;
}

template <class Message>
std::optional<Message> message_in(const Json& json, const char* key) {
  auto message = parse_line(text_of(json, key));
  if (!message || !std::holds_alternative<Message>(*message)) return std::nullopt;
  return std::get<Message>(std::move(*message));
}

void read_record(const Json& json, RankRecord& record) {
  if (auto state = message_in<RankState>(json, "state")) record.state = std::move(*state);
  if (auto end = message_in<RankFailure>(json, "end")) record.end = end->end, record.message = end->message;
  record.measurement = message_in<RankMeasurement>(json, "measurement");
  record.output = text_of(json, "output");
}

}  // namespace

RunBoard::RunBoard(RunBoardOptions options) : options_(std::move(options)), began_(options_.clock()) {
  std::error_code ignored;  // shows when nothing can be written there
  std::filesystem::create_directories(options_.directory, ignored);
  if (options_.rank == 0) {
    run_ = options_.token;
    for (std::int64_t rank = 1; rank < options_.world_size; ++rank) peers_[rank].changed = began_;
  } else {
    peers_[0].changed = began_;
  }
}

void RunBoard::exchange(const std::vector<RankRecord>& ours, bool failed) {
  ours_ = ours;
  failed_ = failed;
  const milliseconds now = options_.clock();
  if (now - last_ < kInterval) return;
  last_ = now;
  if (options_.rank == 0)
    read_all();
  else
    read_rank0();
  look_for_silence();
  write();
}

void RunBoard::write() {
  Json json{{"token", options_.token}, {"run", run_}, {"sequence", sequence_++}, {"failed", failed_ || failure_}};
  if (!ours_.empty()) json["rank"] = json_of(ours_.front());
  json["final"] = !ours_.empty() && (failed_ || ours_.front().end == RankEnd::finished);
  if (options_.rank == 0) {
    Json roll = Json::object();
    for (const auto& [rank, peer] : peers_) roll[std::to_string(rank)] = peer.token;
    json["roll"] = std::move(roll);
    if (rendezvous_) json["rendezvous"] = to_line(*rendezvous_);
    if (verdict_) json["verdict"] = *verdict_;
  }
  const bool written = write_json(path(file_of(options_.rank)), options_.token, json);
  // A disk that fills up later shows as silence.
  if (!written && sequence_ == 1) give_up("no file can be written in " + options_.directory);
}

/// Nobody can be heard of.
void RunBoard::give_up(const std::string& reason) {
  failure_ = reason;
  for (auto& [rank, peer] : peers_) {
    peer.record.rank = rank;
    peer.record.end = RankEnd::communicator_failed, peer.record.message = reason;
    peer.final = true;
  }
}

void RunBoard::read_rank0() {
  const Json json = read_json(path(file_of(0)));
  Peer& rank0 = peers_[0];
  const Json& roll = json.is_object() && json.contains("roll") ? json["roll"] : Json::object();
  if (text_of(roll, std::to_string(options_.rank).c_str()) != options_.token) return;  // of another run, or not yet
  run_ = text_of(json, "token");
  if (rank0.token != run_) rank0 = {.token = run_, .changed = options_.clock(), .joined = true};
  const std::int64_t sequence = number_of(json, "sequence");
  if (sequence != rank0.sequence) rank0.sequence = sequence, rank0.changed = options_.clock();
  if (!rendezvous_) rendezvous_ = message_in<Rendezvous>(json, "rendezvous");
  if (flag_of(json, "failed") && !failure_) failure_ = "another rank has ended";
  if (json.contains("verdict")) verdict_ = static_cast<int>(number_of(json, "verdict"));
}

void RunBoard::read_all() {
  for (auto& [rank, peer] : peers_) read_peer(rank, peer);
}

void RunBoard::read_peer(std::int64_t rank, Peer& peer) {
  const Json json = read_json(path(file_of(rank)));
  const std::string token = text_of(json, "token");
  if (token.empty()) return;
  if (token != peer.token) peer = {.token = token, .changed = peer.changed};  // the last to come is the one
  if (text_of(json, "run") != run_) return;
  peer.joined = true;
  const std::int64_t sequence = number_of(json, "sequence");
  if (sequence != peer.sequence) peer.sequence = sequence, peer.changed = options_.clock();
  peer.record.rank = rank;
  if (json.contains("rank")) read_record(json["rank"], peer.record);
  peer.final = flag_of(json, "final");
  if (flag_of(json, "failed") && !failure_) failure_ = "rank " + std::to_string(rank) + " has ended";
}

void RunBoard::look_for_silence() {
  const milliseconds now = options_.clock();
  for (auto& [rank, peer] : peers_) {
    if (peer.final || now - peer.changed <= options_.timeout) continue;
    std::string message = "rank " + std::to_string(rank) + (peer.joined ? " shows no life any more" : " did not come");
    if (!peer.joined && !peer.token.empty()) message += " (a file of another run lies in " + options_.directory + ")";
    peer.record.rank = rank;
    peer.record.end = peer.joined ? RankEnd::died : RankEnd::communicator_failed;
    peer.record.message = message;
    peer.final = true;
    if (!failure_) failure_ = std::move(message);
  }
}

std::optional<std::vector<RankRecord>> RunBoard::others() {
  look_for_silence();
  std::vector<RankRecord> out;
  for (const auto& [rank, peer] : peers_) {
    if (!peer.final) return std::nullopt;
    out.push_back(peer.record);
  }
  return out;
}

void RunBoard::publish_verdict(int exit_status) {
  verdict_ = exit_status;
  write();
}

}  // namespace qlp
