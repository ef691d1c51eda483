#include "fairlead/connection/channel.hpp"

#include <algorithm>

namespace fairlead {

namespace {

// One end. Each end touches only its own members, on its own loop; the two talk by posting to each other.
class ChannelEnd final : public Connection {
 public:
  ChannelEnd(Loop& loop, std::size_t capacity, const Limits& limits)
      : Connection(loop), capacity_(capacity), limits_(limits) {}

  void join(const std::shared_ptr<ChannelEnd>& other) { other_ = other; }

  std::size_t backlog() const noexcept override {
    return sent_ > accepted() ? static_cast<std::size_t>(sent_ - accepted()) : 0;
  }
  std::string description() const override { return "channel"; }

 private:
  // What the other end has taken plus what may be on its way counts as written.
  std::uint64_t accepted() const noexcept { return taken_ + capacity_; }

  std::shared_ptr<ChannelEnd> self() { return std::static_pointer_cast<ChannelEnd>(shared_from_this()); }

  Result<void> enqueue(const rpc::Rope& message, Waiter* waiter, Concerning /*of no use here*/) override {
    Bytes bytes = message.joined();
    sent_ += bytes.size();
    if (waiter) waiter->until = sent_;
    if (const auto other = other_.lock()) {
      other->loop().post([other, bytes = std::move(bytes)]() mutable { other->arrive(std::move(bytes)); });
    }
    // A waiter is resumed from the loop and not from within its own suspension.
    if (waiter) loop().post([me = self()] { me->notify_written(me->accepted()); });
    return {};
  }

  std::uint64_t position_at_backlog(std::size_t bytes) const noexcept override {
    return sent_ - std::min<std::uint64_t>(bytes, sent_);
  }

  void arrive(Bytes bytes) {
    if (reason()) return;
    arrived_bytes_ += bytes.size();
    arrived_.push_back(std::move(bytes));
    if (receiver_waiting()) hand_over();
  }

  void want_input() override {
    if (arrived_.empty()) return;
    loop().post([me = self()] {
      if (me->receiver_waiting()) me->hand_over();
    });
  }

  void hand_over() {
    for (Bytes& bytes : arrived_) deliver_frame(std::move(bytes), limits_);
    arrived_.clear();
    const std::size_t taken = std::exchange(arrived_bytes_, 0);
    if (const auto other = other_.lock()) {
      other->loop().post([other, taken] { other->was_taken(taken); });
    }
    wake_receiver();
  }

  void was_taken(std::size_t bytes) {
    taken_ += bytes;
    if (!reason()) notify_written(accepted());
  }

  void release() override {
    arrived_.clear();
    if (const auto other = other_.lock()) {
      other->loop().post([other] { other->other_closed(); });
    }
  }

  void other_closed() {
    if (reason()) return;
    for (Bytes& bytes : arrived_) deliver_frame(std::move(bytes), limits_);
    fail(Error(ErrorKind::closed, "the other end of the channel was closed"));
  }

  std::size_t capacity_;
  Limits limits_;
  std::weak_ptr<ChannelEnd> other_;
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;
  std::deque<Bytes> arrived_;
  std::size_t arrived_bytes_ = 0;
};

}  // namespace

std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> make_channel(Loop& first, Loop& second,
                                                                                 std::size_t capacity,
                                                                                 Limits limits) {
  auto a = std::make_shared<ChannelEnd>(first, capacity, limits);
  auto b = std::make_shared<ChannelEnd>(second, capacity, limits);
  a->join(b);
  b->join(a);
  return {a, b};
}

}  // namespace fairlead
