// Limits: the limits of connections, peers and child processes, with their defaults. Error messages refer to
// a limit by its name here. Other layers define further limits in their options (docs/limits.md).
#pragma once

#include <chrono>
#include <cstddef>

namespace fairlead {

struct Limits {
  // Frames.
  std::size_t max_frame_bytes = 10u << 20;  // a larger frame is rejected before it is fully buffered
  static constexpr std::size_t kMaxFrameCeiling = 2u << 30;  // upper bound of max_frame_bytes
  std::size_t max_header_bytes = 8u << 10;                   // header framing: the header block of one frame
  std::size_t max_depth = 512;                               // nesting of arrays and objects
  std::size_t max_noise_frames = 1000;                       // consecutive malformed frames; 0: no limit
  std::size_t max_batch_messages = 1000;                     // messages in one batch

  // Queues.
  std::size_t max_backlog_bytes = 64u << 20;  // queued for the remote peer; above it, calls fail
  // Responses queued for the remote peer. Above it, reading pauses unless a call waits for its response.
  std::size_t backlog_pause_bytes = 16u << 20;
  std::size_t max_calls_in_flight = 65536;       // calls waiting for a response, per peer
  std::size_t max_requests_in_progress = 16384;  // received requests being handled, per peer

  // Timeouts.
  std::chrono::milliseconds call_timeout{30'000};     // a call fails after this time without a response
  std::chrono::milliseconds write_stall{60'000};      // the remote peer reads no byte: the connection closes
  std::chrono::milliseconds connect_timeout{10'000};  // connecting a TCP or Unix socket
  std::chrono::milliseconds drain_grace{5'000};       // time for requests in progress to finish at shutdown
  std::chrono::milliseconds stop_grace{1'000};        // time for a child to exit: after EOF, after SIGTERM

  // Logs. The limit max_log_field_bytes: longer values in log lines are truncated.
  static constexpr std::size_t kMaxLogFieldBytes = 4u << 10;

  // Processes.
  std::size_t stderr_keep_lines = 20;        // last lines of stderr kept per child process
  std::size_t stderr_line_bytes = 4u << 10;  // a longer line is truncated
  std::size_t stderr_log_lines = 100;  // stderr lines logged per child and second; the rest are only counted
  std::size_t max_nesting = 4;         // a process with this many gateways among its ancestors starts none
  std::chrono::milliseconds keeper_timeout{2'000};  // waiting for a response of the keeper process

  // Listeners and threads.
  std::size_t max_connections = 10'000;   // open connections per listener
  std::size_t max_blocking_threads = 16;  // threads for blocking handlers
  std::size_t max_blocking_queue = 4096;  // blocking handlers waiting for a thread
};

}  // namespace fairlead
