#include "report/host_text.h"

#include "report/format.h"

namespace qlp {
namespace {

std::string rank_text(std::string_view who, const HostRank& rank) {
  std::string text = std::string{who} + " up to " + gib(rank.peak);
  if (rank.pinned != Bytes{}) text += " (pinned " + gib(rank.pinned) + ")";
  return text;
}

}  // namespace

std::string host_text(const HostReport& host) {
  std::string text = "host " + gib(host.per_node) + " per node, most in " + host.per_node_phase + ": ";
  if (host.others)
    text += rank_text("rank 0", host.rank0) + ", " + rank_text("others", *host.others) + " each";
  else
    text += rank_text("tensors", host.rank0) + " each";
  text += ", processes " + std::to_string(host.processes) + " x " + gib(host.process);
  if (host.page_cache != Bytes{}) text += "; " + gib(host.page_cache) + " of files in the page cache are not in it";
  return text;
}

}  // namespace qlp
