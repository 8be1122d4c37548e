// What stdout and stderr are connected to.
#pragma once

#include <string>
#include <string_view>

#include "app/common_arguments.h"

namespace qlp::app {

enum class Stream : std::uint8_t { out, err };

bool is_terminal(Stream stream);

/// Colours as asked for; on `automatic` where the stream is a terminal that can show them: not with NO_COLOR
/// (no-color.org) or TERM=dumb.
bool use_colors(ColorMode mode, Stream stream);

/// What messages and excerpts quote, with nothing in it that steers the terminal.
std::string for_terminal(std::string_view text);

}  // namespace qlp::app
