#include "driver_phases.hpp"

#include <algorithm>

#include "accounting.hpp"

namespace bench {

namespace {

constexpr std::string_view kInitialize =
    R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},)"
    R"("clientInfo":{"name":"bench","version":"1"}}})"
    "\n";
constexpr std::string_view kInitialized = R"({"jsonrpc":"2.0","method":"notifications/initialized"})"
                                          "\n";

std::string_view next_line(Wire& wire) {
  while (true) {
    const std::optional<std::string_view> line = wire.next_line();
    if (line) return *line;
    wire.read_some();
  }
}

// The pending calls, as slots of the ring. Slots are sent in order; a slot that is still pending when it is
// next to be sent delays the others.
class PendingCalls {
 public:
  PendingCalls(Wire& wire, const Requests& requests, std::size_t limit)
      : wire_(wire), requests_(requests), limit_(limit), pending_(requests.slots(), false) {}

  std::size_t count() const noexcept { return count_; }

  // Sends calls until `limit` calls are pending, but at most `max_calls`.
  void send_calls(std::uint64_t max_calls) {
    const std::size_t first = next_;
    while (count_ < limit_ && next_ < pending_.size() && !pending_[next_] && max_calls-- > 0)
      mark_pending(next_++);
    wire_.queue(requests_.lines(first, next_));
    if (next_ < pending_.size()) return;
    next_ = 0;
    while (count_ < limit_ && next_ < first && !pending_[next_] && max_calls-- > 0) mark_pending(next_++);
    wire_.queue(requests_.lines(0, next_));
  }

  void finish(std::size_t slot) {
    if (!pending_[slot]) fail("a response belongs to no call");
    pending_[slot] = false;
    --count_;
  }

 private:
  void mark_pending(std::size_t slot) {
    pending_[slot] = true;
    ++count_;
  }

  Wire& wire_;
  const Requests& requests_;
  std::size_t limit_;
  std::vector<bool> pending_;
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

// Returns the slot of a successful response; nullopt for other messages (a notification).
std::optional<std::size_t> accept_response(std::string_view line, const Requests& requests, bool check) {
  const std::optional<std::size_t> slot = requests.slot_of(line);
  if (!slot) return std::nullopt;
  if (line.size() < requests.text().size()) fail("a response is too short");
  if (check && line.find(requests.text()) == std::string_view::npos)
    fail("a response does not contain the text");
  return slot;
}

}  // namespace

void initialize(Wire& wire) {
  wire.queue(kInitialize);
  const std::string_view answer = next_line(wire);
  if (answer.find("\"result\"") == std::string_view::npos) fail("initialize failed");
  wire.queue(kInitialized);
  wire.flush();
}

void call_once(Wire& wire, const Requests& requests) {
  wire.queue(requests.lines(0, 1));
  while (accept_response(next_line(wire), requests, true) != 0u) {
  }
}

std::vector<double> call_sequentially(Wire& wire, const Requests& requests, const Load& load) {
  std::vector<double> times;
  times.reserve(1u << 20);
  const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(load.seconds * 1e9);
  std::uint64_t before = now_ns();
  for (std::size_t slot = 0; before < end && times.size() < load.max_calls; ++slot) {
    if (slot == requests.slots()) slot = 0;
    wire.queue(requests.lines(slot, slot + 1));
    wire.flush();
    std::optional<std::size_t> finished;
    while (finished != slot) finished = accept_response(next_line(wire), requests, false);
    const std::uint64_t after = now_ns();
    times.push_back(static_cast<double>(after - before) / 1e3);
    before = after;
  }
  return times;
}

std::uint64_t call_pipelined(Wire& wire, const Requests& requests, const Load& load, bool check) {
  PendingCalls pending(wire, requests, load.in_flight);
  std::uint64_t done = 0;
  const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(load.seconds * 1e9);
  bool more = true;
  while (true) {
    more = more && done < load.max_calls && now_ns() < end;
    // Filled only when everything is written, so that never more than two runs of lines are queued.
    if (more && wire.flush()) pending.send_calls(load.max_calls - done - pending.count());
    if (pending.count() == 0) return done;
    wire.read_some();
    while (const std::optional<std::string_view> line = wire.next_line()) {
      const std::optional<std::size_t> slot = accept_response(*line, requests, check);
      if (!slot) continue;
      pending.finish(*slot);
      ++done;
    }
  }
}

}  // namespace bench
