// Where a runtime makes one stream wait for another (Stream.wait_stream, wait_event), it says so here.
#pragma once

#include "tensor/context.h"
#include "tensor/streams.h"

namespace qlp {

/// What is queued on `stream` from now on waits for what is queued on `other` so far. Where work is not queued there is
/// nothing to wait for.
inline void wait_stream(const Context& ctx, StreamId stream, StreamId other) {
  Streams* const streams = ctx.device.compute().streams;
  if (streams && stream != other && !ctx.abandoned) streams->wait(stream, other);
}

}  // namespace qlp
