// How a plan's options are listed: once, in visit_options beside its struct, for whoever reads or writes them.
//
// A visitor has five functions. option(key, value) is an option that people may set; numbers come with the least and
// the most that they may be: option(key, value, least, most). automatic(key, value) is one that may be "auto", the
// absent value; fillable(key, value) one that may be "none", too, where DeepSpeed's file does not have it.
// section(key, options) is a map of options. named(key, value) is one that the name of the plan says.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace qlp {

inline constexpr std::int64_t kMostRanks = 65536;

/// `P` is `Plan`, or const: visit_options serves readers and writers.
template <class P, class Plan>
concept OptionsOf = std::same_as<std::remove_const_t<P>, Plan>;

}  // namespace qlp
