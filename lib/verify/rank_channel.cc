#include "verify/rank_channel.h"

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

namespace qlp {

bool RankChannel::tell(const RankMessage& message) {
  const std::string line = to_line(message);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = send(file_.number(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Result<Rendezvous, std::string> RankChannel::wait_for_rendezvous(std::chrono::milliseconds timeout) {
  for (;;) {
    if (const auto line = lines_.next()) {
      auto message = parse_line(*line);
      if (!message) return Unexpected{message.error()};
      if (auto* rendezvous = std::get_if<Rendezvous>(&*message)) return std::move(*rendezvous);
      return Unexpected{std::string{"the launcher told something else than a rendezvous"}};
    }
    pollfd ready{.fd = file_.number(), .events = POLLIN, .revents = 0};
    const int count = poll(&ready, 1, static_cast<int>(timeout.count()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Unexpected{std::string{"rank 0 told no address within the timeout"}};
    if (!read_available(file_, lines_.text()) && lines_.text().empty())
      return Unexpected{std::string{"the launcher is gone"}};
  }
}

}  // namespace qlp
