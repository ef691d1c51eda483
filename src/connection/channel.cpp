#include "fairlead/connection/channel.hpp"

#include <algorithm>
#include <deque>

namespace fairlead {

namespace {

// One end of a channel. Each end uses only its own members, on its own loop; the two ends communicate by
// posting callbacks to each other's loop.
class ChannelEnd final : public Connection {
 public:
  ChannelEnd(Loop& loop, std::size_t capacity, const Limits& limits)
      : Connection(loop), capacity_(capacity), limits_(limits) {}

  void connect_to(const std::shared_ptr<ChannelEnd>& remote) { remote_ = remote; }

  std::size_t backlog() const noexcept override {
    return sent_ > write_limit() ? static_cast<std::size_t>(sent_ - write_limit()) : 0;
  }
  std::string description() const override { return "channel"; }

 private:
  // Returns the position up to which bytes count as written: what the other end has received, plus
  // `capacity`.
  std::uint64_t write_limit() const noexcept { return consumed_ + capacity_; }

  std::shared_ptr<ChannelEnd> shared_self() {
    return std::static_pointer_cast<ChannelEnd>(shared_from_this());
  }

  Result<void> enqueue(const rpc::Rope& message, WriteWaiter* waiter, RelatedRequest) override {
    Bytes bytes = message.joined();
    sent_ += bytes.size();
    if (waiter) waiter->until = sent_;
    if (const auto remote = remote_.lock()) {
      remote->loop().post(
          [remote, bytes = std::move(bytes)]() mutable { remote->on_received(std::move(bytes)); });
    }
    // Posted, because the coroutine of `waiter` is not suspended yet.
    if (waiter) loop().post([self = shared_self()] { self->notify_written(self->write_limit()); });
    return {};
  }

  std::uint64_t position_at_backlog(std::size_t bytes) const noexcept override {
    return sent_ - std::min<std::uint64_t>(bytes, sent_);
  }

  void on_received(Bytes bytes) {
    if (close_reason()) return;
    received_bytes_ += bytes.size();
    received_.push_back(std::move(bytes));
    if (receiver_waiting()) deliver_received();
  }

  void request_input() override {
    if (received_.empty()) return;
    loop().post([self = shared_self()] {
      if (self->receiver_waiting()) self->deliver_received();
    });
  }

  void deliver_received() {
    for (Bytes& bytes : received_) deliver_frame(std::move(bytes), limits_);
    received_.clear();
    const std::size_t consumed = std::exchange(received_bytes_, 0);
    if (const auto remote = remote_.lock()) {
      remote->loop().post([remote, consumed] { remote->on_consumed(consumed); });
    }
    wake_receiver();
  }

  void on_consumed(std::size_t bytes) {
    consumed_ += bytes;
    if (!close_reason()) notify_written(write_limit());
  }

  void release() override {
    received_.clear();
    if (const auto remote = remote_.lock()) {
      remote->loop().post([remote] { remote->on_remote_closed(); });
    }
  }

  void on_remote_closed() {
    if (close_reason()) return;
    for (Bytes& bytes : received_) deliver_frame(std::move(bytes), limits_);
    fail(Error(ErrorKind::closed, "the other end of the channel was closed"));
  }

  std::size_t capacity_;
  Limits limits_;
  std::weak_ptr<ChannelEnd> remote_;
  std::uint64_t sent_ = 0;
  std::uint64_t consumed_ = 0;
  std::deque<Bytes> received_;
  std::size_t received_bytes_ = 0;
};

}  // namespace

std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> make_channel(Loop& first, Loop& second,
                                                                                 std::size_t capacity,
                                                                                 Limits limits) {
  auto a = std::make_shared<ChannelEnd>(first, capacity, limits);
  auto b = std::make_shared<ChannelEnd>(second, capacity, limits);
  a->connect_to(b);
  b->connect_to(a);
  return {a, b};
}

}  // namespace fairlead
