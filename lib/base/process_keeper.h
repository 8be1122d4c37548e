// The process between ours and a program that it started: whatever the program starts ends with it, and all of them
// with us.
#pragma once

#include <csignal>
#include <sys/types.h>

namespace qlp {

/// Makes this process, which has just been forked with all signals blocked, one that keeps a program. False, with
/// errno: it cannot be.
bool become_keeper(pid_t parent);

/// Waits until the program, a child of this process, has ended, or until the keeper is told to end it (the signal
/// below, which also comes when the thread that forked it dies). Then kills whatever descends from the program, in
/// other groups and sessions too, and ends as the program did. Nothing here but what is safe in a signal handler.
[[noreturn]] void keep(pid_t program);

/// Tells the keeper to end the program. What a program gets by itself are other signals.
inline int keeper_end_signal() { return SIGRTMAX; }

}  // namespace qlp
