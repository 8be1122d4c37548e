#include "nullgpu/rendezvous.h"

#include <cstdlib>
#include <memory>
#include <netdb.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace nullgpu {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

const char* rendezvous() {
  const char* text = std::getenv("NCCL_COMM_ID");
  return text == nullptr || *text == '\0' ? nullptr : text;
}

// None where it is no address.
Addresses parse(const std::string& text) {
  Addresses none{nullptr, &freeaddrinfo};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    return none;
  }
  const bool bracketed = text[0] == '[' && text[colon - 1] == ']';
  const std::string host = bracketed ? text.substr(1, colon - 2) : text.substr(0, colon);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), text.c_str() + colon + 1, &hints, &found) != 0) {
    return none;
  }
  return {found, &freeaddrinfo};
}

}  // namespace

bool rendezvous_makes_sense() { return rendezvous() == nullptr || parse(rendezvous()) != nullptr; }

bool can_listen_at_rendezvous() {
  if (rendezvous() == nullptr) {
    return true;
  }
  const Addresses address = parse(rendezvous());
  if (address == nullptr) {
    return false;
  }
  const int socket = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int reuse = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  const bool bound = socket >= 0 && bind(socket, address->ai_addr, address->ai_addrlen) == 0;
  if (socket >= 0) {
    close(socket);
  }
  return bound;
}

}  // namespace nullgpu
