#include "nullgpu/copies.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <utility>
#include <vector>

#include "nullgpu/books.h"
#include "nullgpu/settings.h"
#include "nullgpu/status.h"

namespace nullgpu {
namespace {

std::uintptr_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// Zeros into host memory that may never have been touched: only pages that exist are written to.
void zero_host(void* p, std::size_t n) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kPages = 4096;
  auto* at = static_cast<unsigned char*>(p);
  const std::size_t head = std::min(n, (kPage - number(p) % kPage) % kPage);
  std::memset(at, 0, head);
  at += head;
  n -= head;
  std::vector<unsigned char> resident(kPages);
  while (n >= kPage) {
    const std::size_t pages = std::min(n / kPage, kPages);
    if (mincore(at, pages * kPage, resident.data()) != 0) {
      std::fill_n(resident.begin(), pages, static_cast<unsigned char>(1));
    }
    for (std::size_t i = 0; i < pages; ++i) {
      if ((resident[i] & 1U) != 0) {
        std::memset(at + i * kPage, 0, kPage);
      }
    }
    at += pages * kPage;
    n -= pages * kPage;
  }
  std::memset(at, 0, n);
}

void copy_known(std::uintptr_t destination, std::uintptr_t source, std::size_t n, bool onto_device) {
  Books& books = Books::get();
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> parts;
  books.known().for_each(source, source + n,
                         [&](std::uintptr_t begin, std::uintptr_t end) { parts.emplace_back(begin, end); });
  std::vector<std::vector<unsigned char>> kept;
  if (onto_device) {  // ranges may overlap
    for (const auto& [begin, end] : parts) {
      const auto* from = reinterpret_cast<const unsigned char*>(begin);
      kept.emplace_back(from, from + (end - begin));
    }
    books.known().forget(destination, destination + n);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [begin, end] = parts[i];
    const std::uintptr_t to = destination + (begin - source);
    std::memcpy(reinterpret_cast<void*>(to), onto_device ? kept[i].data() : reinterpret_cast<const void*>(begin),
                end - begin);
    if (onto_device) {
      books.known().add(to, to + (end - begin));
    }
  }
}

}  // namespace

int check_range(const void* p, std::size_t n) {
  bool on_device = false;
  return n == 0 || Books::get().whole(p, n, on_device) ? ok : invalid_value;
}

int check_copy(const void* destination, const void* source, std::size_t n) {
  if (n != 0 && (destination == nullptr || source == nullptr)) {
    return invalid_value;
  }
  const int status = check_range(destination, n);
  return status != ok ? status : check_range(source, n);
}

void copy(void* destination, const void* source, std::size_t n) {
  if (n == 0 || destination == source) {
    return;
  }
  Books& books = Books::get();
  bool onto = false;
  bool off = false;
  books.whole(destination, n, onto);
  books.whole(source, n, off);
  const bool small = n <= settings().copy_max;
  const std::uintptr_t d = number(destination);
  if (!onto && !off) {
    std::memmove(destination, source, n);
  } else if (!onto) {
    if (small) {
      std::memcpy(destination, source, n);
      return;
    }
    zero_host(destination, n);
    const std::lock_guard guard(books);
    copy_known(d, number(source), n, false);
  } else {
    const std::lock_guard guard(books);
    if (off) {
      copy_known(d, number(source), n, true);
    } else if (small) {
      put(destination, source, n);
    } else {
      books.known().forget(d, d + n);
    }
  }
}

void put(void* destination, const void* source, std::size_t n) {
  const std::lock_guard guard(Books::get());
  std::memcpy(destination, source, n);
  Books::get().known().add(number(destination), number(destination) + n);
}

void fill(void* p, unsigned value, std::size_t width, std::size_t count) {
  const std::size_t n = width * count;
  if (n == 0) {
    return;
  }
  Books& books = Books::get();
  bool on_device = false;
  books.whole(p, n, on_device);
  const std::lock_guard guard(books);
  if (on_device) {
    books.known().forget(number(p), number(p) + n);
    if (value != 0 && n > settings().copy_max) {
      return;
    }
    books.known().add(number(p), number(p) + n);
    if (value == 0) {
      return;  // reads as zero already
    }
  }
  auto* at = static_cast<unsigned char*>(p);
  if (width == 1) {
    std::memset(at, static_cast<int>(value), n);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(at + i * width, &value, width);
  }
}

void copy(const Pitched& p) {
  for (std::size_t z = 0; z < p.depth; ++z) {
    auto* to = static_cast<unsigned char*>(p.destination) + z * p.destination_slice;
    const auto* from = static_cast<const unsigned char*>(p.source) + z * p.source_slice;
    if (p.destination_pitch == p.width && p.source_pitch == p.width) {
      copy(to, from, p.width * p.height);
      continue;
    }
    for (std::size_t y = 0; y < p.height; ++y) {
      copy(to + y * p.destination_pitch, from + y * p.source_pitch, p.width);
    }
  }
}

}  // namespace nullgpu
