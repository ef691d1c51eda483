// The limits of connections, peers and processes, with their defaults. Error messages name a limit by the
// name it has here. Other layers have limits of their own, in their options (docs/limits.md).
#pragma once

#include <chrono>
#include <cstddef>

namespace fairlead {

struct Limits {
  // Frames.
  std::size_t max_frame_bytes = 10u << 20;  // a frame over this is refused before it is buffered whole
  static constexpr std::size_t kMaxFrameCeiling = 2u << 30;  // the most max_frame_bytes may be set to
  std::size_t max_header_bytes = 8u << 10;                   // header framing: the head of one frame
  std::size_t max_depth = 512;                               // nesting of arrays and objects
  std::size_t max_noise_frames = 1000;    // frames in a row that are not messages; 0: no limit
  std::size_t max_batch_messages = 1000;  // messages in one batch

  // Queues.
  std::size_t max_backlog_bytes = 64u << 20;    // queued for the other side; over it calls are refused
  std::size_t backlog_pause_bytes = 16u << 20;  // queued answers at which a peer without calls pauses reading
  std::size_t max_calls_in_flight = 65536;      // our calls waiting for an answer, per peer
  std::size_t max_requests_in_progress = 16384;  // requests of the other side under way, per peer

  // Clocks.
  std::chrono::milliseconds call_timeout{30'000};     // a call without an answer
  std::chrono::milliseconds write_stall{60'000};      // the other side reads nothing at all for this long
  std::chrono::milliseconds connect_timeout{10'000};  // TCP and Unix sockets
  std::chrono::milliseconds drain_grace{5'000};       // requests under way at shutdown
  std::chrono::milliseconds stop_grace{1'000};        // child process: each rung of the stop ladder

  // Logs.
  static constexpr std::size_t kMaxLogFieldBytes = 4u
                                                   << 10;  // max_log_field_bytes: longer values are truncated

  // Processes.
  std::size_t stderr_keep_lines = 20;        // last words kept per child
  std::size_t stderr_line_bytes = 4u << 10;  // a longer line is cut
  std::size_t stderr_log_lines = 100;  // lines of one child's stderr logged per second; more are counted
  std::size_t max_nesting = 4;         // gateways above a process that may start a child
  std::chrono::milliseconds keeper_timeout{2'000};  // the keeper process does not answer
  // Listeners and threads.
  std::size_t max_connections = 10'000;   // accepted and open, per listener
  std::size_t max_blocking_threads = 16;  // for handlers that block
  std::size_t max_blocking_queue = 4096;  // blocking handlers waiting for a thread
};

}  // namespace fairlead
