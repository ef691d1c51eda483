#include "fairlead/peer/connection.hpp"

#include <algorithm>
#include <new>

#include "rpc/message_parser.hpp"

namespace fairlead {

Result<void> Connection::post(const rpc::Rope& message, RelatedRequest related_request) {
  if (close_reason_) return *close_reason_;
  return enqueue(message, nullptr, related_request);
}

void Connection::close() noexcept {
  if (closed_.exchange(true, std::memory_order_acq_rel)) return;
  auto finish = [self = shared_from_this()] {
    self->inbox_.clear();
    self->fail(Error(ErrorKind::closed, "the connection was closed by this side"));
  };
  if (loop_.in_loop_thread()) {
    finish();
  } else {
    loop_.post(std::move(finish));
  }
}

Task<void> Connection::wait_closed() {
  co_return;
}

void Connection::deliver_frame(Bytes frame, const Limits& limits) {
  if (frame.size() <= rpc::MessageParser::kBytesPerStep)
    return deliver(rpc::Message::parse(std::move(frame), limits));
  inbox_.emplace(rpc::Message(), std::make_shared<rpc::MessageParser>(std::move(frame), limits));
  schedule_parse_step();
}

void Connection::schedule_parse_step() {
  if (std::exchange(parse_posted_, true)) return;
  loop_.post([self = shared_from_this()] {
    self->parse_posted_ = false;
    try {
      self->parse_step();
    } catch (const std::bad_alloc&) {
      self->inbox_.clear();
      self->fail(Error(ErrorKind::resource_exhausted,
                       "resource exhausted: out of memory for a message from " + self->description()));
    }
  });
}

void Connection::parse_step() {
  const auto next =
      std::ranges::find_if(inbox_, [](const InboxEntry& entry) { return entry.parser != nullptr; });
  if (next == inbox_.end()) return;  // the connection was closed in the meantime
  if (std::optional<rpc::Message> message = next->parser->step())
    *next = InboxEntry{std::move(*message), nullptr};
  // Posts the next step even if no other frame is being parsed; it does nothing then.
  schedule_parse_step();
  wake_receiver();
}

void Connection::wake_receiver() {
  if (!receiver_ || !can_receive()) return;
  std::exchange(receiver_, nullptr).resume();
}

void Connection::end_input(Error reason) {
  if (input_end_reason_) return;
  input_end_reason_ = std::make_unique<const Error>(std::move(reason));
  // Posted, because the receiver itself may be further up the call stack.
  loop_.post([self = shared_from_this()] { self->wake_receiver(); });
}

void Connection::fail(Error reason) {
  closed_.store(true, std::memory_order_release);
  if (close_reason_) return;
  close_reason_ = std::make_unique<const Error>(reason);
  input_end_reason_.reset();
  end_input(std::move(reason));
  release();
  loop_.post([self = shared_from_this()] {
    while (!self->waiters_.empty()) {
      WriteWaiter* waiter = self->waiters_.front();
      self->waiters_.pop();
      waiter->waiting = false;
      waiter->outcome = *self->close_reason_;
      waiter->handle.resume();
    }
  });
}

void Connection::notify_written(std::uint64_t position) {
  if (waiters_.empty()) return;
  const auto self = shared_from_this();
  // A resumed coroutine may add or remove waiters, so the search starts again after each one.
  while (true) {
    const auto due =
        std::ranges::find_if(waiters_, [&](const WriteWaiter* w) { return w->until <= position; });
    if (due == waiters_.end()) return;
    WriteWaiter* waiter = *due;
    waiters_.erase(due);
    waiter->waiting = false;
    waiter->handle.resume();
  }
}

void Connection::notify_unsent(std::uint64_t position, const Error& reason) {
  const auto found =
      std::ranges::find_if(waiters_, [&](const WriteWaiter* w) { return w->until == position; });
  if (found == waiters_.end()) return;
  WriteWaiter* waiter = *found;
  waiters_.erase(found);
  waiter->waiting = false;
  waiter->outcome = reason;
  waiter->handle.resume();
}

void Connection::add_waiter(WriteWaiter& waiter) {
  waiter.waiting = true;
  waiters_.push(&waiter);
}

void Connection::remove_waiter(WriteWaiter& waiter) noexcept {
  if (!waiter.waiting) return;
  waiter.waiting = false;
  waiters_.erase(std::ranges::find(waiters_, &waiter));
}

bool Connection::Send::await_suspend(std::coroutine_handle<> handle) {
  if (connection_.close_reason_) {
    waiter_.outcome = *connection_.close_reason_;
    return false;
  }
  waiter_.outcome = connection_.enqueue(message_, &waiter_, RelatedRequest());
  if (!waiter_.outcome) return false;
  waiter_.handle = handle;
  connection_.add_waiter(waiter_);
  return true;
}

Connection::ReceiveWait::~ReceiveWait() {
  if (suspended_) connection_.receiver_ = nullptr;
}

void Connection::ReceiveWait::await_suspend(std::coroutine_handle<> handle) {
  suspended_ = true;
  connection_.receiver_ = handle;
  if (connection_.inbox_.empty()) connection_.request_input();
}

Result<rpc::Message> Connection::pop_received() {
  if (inbox_.empty()) return *input_end_reason_;
  return pop_message();
}

// Removes and returns the first message. A separate function, so that the compiler constructs the returned
// object in place and the message is moved only once.
Result<rpc::Message> Connection::pop_message() {
  Result<rpc::Message> message = std::move(inbox_.front().message);
  inbox_.pop();
  return message;
}

void Connection::DrainWait::await_suspend(std::coroutine_handle<> handle) {
  waiter_.handle = handle;
  waiter_.until = connection_.position_at_backlog(max_backlog_);
  connection_.add_waiter(waiter_);
}

Result<void> Connection::DrainWait::await_resume() {
  if (!connection_.close_reason_) return {};
  return *connection_.close_reason_;
}

}  // namespace fairlead
