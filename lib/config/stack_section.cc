#include <array>
#include <utility>

#include "config/job_sections.h"

namespace qlp {
namespace {

struct Library {
  std::string_view name;
  Version StackVersions::*version;
  Version oldest;  ///< that the layers here were checked against
};

constexpr std::array<Library, 6> kLibraries{{
    {"torch", &StackVersions::torch, {2, 1, 0}},
    {"transformers", &StackVersions::transformers, {4, 39, 0}},
    {"peft", &StackVersions::peft, {0, 10, 0}},
    {"accelerate", &StackVersions::accelerate, {0, 28, 0}},
    {"bitsandbytes", &StackVersions::bitsandbytes, {0, 43, 0}},
    {"deepspeed", &StackVersions::deepspeed, {0, 18, 3}},
}};

constexpr std::array<NotSupported, 2> kOtherLibraries{{
    {"trl", "no plan depends on its version: leave it out"},
    {"liger_kernel", "no plan depends on its version: leave it out"},
}};

}  // namespace

StackVersions read_stack_section(const Section& where, Findings& findings) {
  StackVersions stack;
  MapReader map(where.node, where.place, findings);
  for (const auto& library : kLibraries) {
    const auto text = map.text(library.name);
    if (!text) {
      if (!map.has(library.name)) map.default_used(library.name, to_string(stack.*library.version));
      continue;
    }
    if (const auto version = parse_version(*text)) {
      stack.*library.version = *version;
      if (*version < library.oldest)
        map.refuse(library.name, "too-old",
                   "not supported: what it did before " + to_string(library.oldest) + " was not checked");
      const Version newest = StackVersions{}.*library.version;
      if (std::pair(version->major, version->minor) > std::pair(newest.major, newest.minor))
        findings.warning("newer-than-known", map.place_of(library.name),
                         "newer than what was checked: planned as " + to_string(newest));
    } else {
      map.refuse(library.name, "bad-value",
                 "'" + text->substr(0, 40) + "' is no version: expected one like " + to_string(stack.*library.version));
    }
  }
  map.finish(kOtherLibraries);
  return stack;
}

}  // namespace qlp
