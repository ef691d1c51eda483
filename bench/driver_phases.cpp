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

// The calls under way, as slots of the ring. Slots are sent in order; one that is still unanswered when its
// turn comes again holds the others up.
class CallsUnderWay {
 public:
  CallsUnderWay(Wire& wire, const Requests& requests, std::size_t limit)
      : wire_(wire), requests_(requests), limit_(limit), busy_(requests.slots(), false) {}

  std::size_t under_way() const noexcept { return under_way_; }

  void fill(std::uint64_t most) {
    const std::size_t first = next_;
    while (under_way_ < limit_ && next_ < busy_.size() && !busy_[next_] && most-- > 0) take(next_++);
    wire_.queue(requests_.lines(first, next_));
    if (next_ < busy_.size()) return;
    next_ = 0;
    while (under_way_ < limit_ && next_ < first && !busy_[next_] && most-- > 0) take(next_++);
    wire_.queue(requests_.lines(0, next_));
  }

  void answered(std::size_t slot) {
    if (!busy_[slot]) fail("an answer to nothing");
    busy_[slot] = false;
    --under_way_;
  }

 private:
  void take(std::size_t slot) {
    busy_[slot] = true;
    ++under_way_;
  }

  Wire& wire_;
  const Requests& requests_;
  std::size_t limit_;
  std::vector<bool> busy_;
  std::size_t next_ = 0;
  std::size_t under_way_ = 0;
};

// The slot of a good answer. What is no answer of ours (a notification) has none.
std::optional<std::size_t> accept(std::string_view line, const Requests& requests, bool check) {
  const std::optional<std::size_t> slot = requests.slot_of(line);
  if (!slot) return std::nullopt;
  if (line.size() < requests.text().size()) fail("an answer is too short");
  if (check && line.find(requests.text()) == std::string_view::npos) fail("an answer is not the echo");
  return slot;
}

}  // namespace

void initialize(Wire& wire) {
  wire.queue(kInitialize);
  const std::string_view answer = next_line(wire);
  if (answer.find("\"result\"") == std::string_view::npos) fail("initialize was refused");
  wire.queue(kInitialized);
  wire.flush();
}

void call_once(Wire& wire, const Requests& requests) {
  wire.queue(requests.lines(0, 1));
  while (accept(next_line(wire), requests, true) != 0u) {
  }
}

std::vector<double> call_sequentially(Wire& wire, const Requests& requests, const Load& load) {
  std::vector<double> times;
  times.reserve(1u << 20);
  const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(load.seconds * 1e9);
  std::uint64_t before = now_ns();
  for (std::size_t slot = 0; before < end && times.size() < load.most_calls; ++slot) {
    if (slot == requests.slots()) slot = 0;
    wire.queue(requests.lines(slot, slot + 1));
    wire.flush();
    std::optional<std::size_t> answered;
    while (answered != slot) answered = accept(next_line(wire), requests, false);
    const std::uint64_t after = now_ns();
    times.push_back(static_cast<double>(after - before) / 1e3);
    before = after;
  }
  return times;
}

std::uint64_t call_pipelined(Wire& wire, const Requests& requests, const Load& load, bool check) {
  CallsUnderWay window(wire, requests, load.in_flight);
  std::uint64_t done = 0;
  const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(load.seconds * 1e9);
  bool more = true;
  while (true) {
    more = more && done < load.most_calls && now_ns() < end;
    // Filled only when all is written, so that the wire never holds more than two runs of lines.
    if (more && wire.flush()) window.fill(load.most_calls - done - window.under_way());
    if (window.under_way() == 0) return done;
    wire.read_some();
    while (const std::optional<std::string_view> line = wire.next_line()) {
      const std::optional<std::size_t> slot = accept(*line, requests, check);
      if (!slot) continue;
      window.answered(*slot);
      ++done;
    }
  }
}

}  // namespace bench
