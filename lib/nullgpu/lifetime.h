// The beginning and the end: what fork() and the end of the process ask for.
#pragma once

namespace nullgpu {

/// The report is written when the process ends, however it does: exit(), _exit() or the end of main.
void watch_process_end();
void write_report_at_end();

void lock_for_fork();
void unlock_after_fork();

}  // namespace nullgpu
