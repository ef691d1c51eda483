#include "fairlead/peer/connection.hpp"

#include <algorithm>
#include <new>

#include "rpc/message_parser.hpp"

namespace fairlead {

Result<void> Connection::post(const rpc::Rope& message, Concerning concerning) {
  if (reason_) return *reason_;
  return enqueue(message, nullptr, concerning);
}

void Connection::close() noexcept {
  if (closed_.exchange(true, std::memory_order_acq_rel)) return;
  auto finish = [self = shared_from_this()] {
    self->inbox_.clear();
    self->fail(Error(ErrorKind::closed, "the connection was closed by this side"));
  };
  if (loop_.here()) {
    finish();
  } else {
    loop_.post(std::move(finish));
  }
}

Task<void> Connection::settled() {
  co_return;
}

void Connection::deliver_frame(Bytes frame, const Limits& limits) {
  if (frame.size() <= rpc::MessageParser::kBytesPerStep)
    return deliver(rpc::Message::parse(std::move(frame), limits));
  inbox_.push(Arrival{rpc::Message(), std::make_shared<rpc::MessageParser>(std::move(frame), limits)});
  parse_soon();
}

void Connection::parse_soon() {
  if (std::exchange(parse_posted_, true)) return;
  loop_.post([self = shared_from_this()] {
    self->parse_posted_ = false;
    try {
      self->parse_step();
    } catch (const std::bad_alloc&) {
      self->inbox_.clear();
      self->fail(Error(ErrorKind::resource_exhausted,
                       "resource exhausted: out of memory for what " + self->description() + " sends"));
    }
  });
}

void Connection::parse_step() {
  const auto next =
      std::ranges::find_if(inbox_, [](const Arrival& arrival) { return arrival.parser != nullptr; });
  if (next == inbox_.end()) return;  // closed meanwhile
  if (std::optional<rpc::Message> message = next->parser->step())
    *next = Arrival{std::move(*message), nullptr};
  // Looks for the next one when its turn comes: in most cases there is none.
  parse_soon();
  wake_receiver();
}

void Connection::wake_receiver() {
  if (!receiver_ || !can_receive()) return;
  std::exchange(receiver_, nullptr).resume();
}

void Connection::end_input(Error reason) {
  if (input_end_) return;
  input_end_ = std::move(reason);
  // Posted, as this may be called from deep inside what the receiver itself set off.
  loop_.post([self = shared_from_this()] { self->wake_receiver(); });
}

void Connection::fail(Error reason) {
  closed_.store(true, std::memory_order_release);
  if (reason_) return;
  reason_ = reason;
  input_end_.reset();
  end_input(std::move(reason));
  release();
  loop_.post([self = shared_from_this()] {
    while (!self->waiters_.empty()) {
      Waiter* waiter = self->waiters_.front();
      self->waiters_.pop_front();
      waiter->waiting = false;
      waiter->outcome = *self->reason_;
      waiter->handle.resume();
    }
  });
}

void Connection::notify_written(std::uint64_t position) {
  if (waiters_.empty()) return;
  const auto self = shared_from_this();
  // A resumed waiter may send again or give up others, so look afresh after each.
  while (true) {
    const auto due = std::ranges::find_if(waiters_, [&](const Waiter* w) { return w->until <= position; });
    if (due == waiters_.end()) return;
    Waiter* waiter = *due;
    waiters_.erase(due);
    waiter->waiting = false;
    waiter->handle.resume();
  }
}

void Connection::notify_unsent(std::uint64_t position, const Error& reason) {
  const auto found = std::ranges::find_if(waiters_, [&](const Waiter* w) { return w->until == position; });
  if (found == waiters_.end()) return;
  Waiter* waiter = *found;
  waiters_.erase(found);
  waiter->waiting = false;
  waiter->outcome = reason;
  waiter->handle.resume();
}

void Connection::add_waiter(Waiter& waiter) {
  waiter.waiting = true;
  waiters_.push_back(&waiter);
}

void Connection::remove_waiter(Waiter& waiter) noexcept {
  if (!waiter.waiting) return;
  waiter.waiting = false;
  std::erase(waiters_, &waiter);
}

bool Connection::Send::await_suspend(std::coroutine_handle<> handle) {
  if (connection_.reason_) {
    waiter_.outcome = *connection_.reason_;
    return false;
  }
  waiter_.outcome = connection_.enqueue(message_, &waiter_, Concerning());
  if (!waiter_.outcome) return false;
  waiter_.handle = handle;
  connection_.add_waiter(waiter_);
  return true;
}

Connection::Receive::~Receive() {
  if (suspended_) connection_.receiver_ = nullptr;
}

void Connection::Receive::await_suspend(std::coroutine_handle<> handle) {
  suspended_ = true;
  connection_.receiver_ = handle;
  if (connection_.inbox_.empty()) connection_.want_input();
}

Result<rpc::Message> Connection::Receive::await_resume() {
  suspended_ = false;
  if (connection_.inbox_.empty()) return *connection_.input_end_;
  return take_first();
}

// Apart from await_resume(), so that the message is moved once: into what is returned.
Result<rpc::Message> Connection::Receive::take_first() {
  Result<rpc::Message> message = std::move(connection_.inbox_.front().message);
  connection_.inbox_.pop();
  return message;
}

void Connection::Drained::await_suspend(std::coroutine_handle<> handle) {
  waiter_.handle = handle;
  waiter_.until = connection_.position_at_backlog(bytes_);
  connection_.add_waiter(waiter_);
}

Result<void> Connection::Drained::await_resume() {
  if (!connection_.reason_) return {};
  return *connection_.reason_;
}

}  // namespace fairlead
