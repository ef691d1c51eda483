#include "connection/stream_pump.hpp"

#include <utility>

namespace fairlead {

StreamPump::StreamPump(Loop& loop, Owner& owner, rpc::ByteQueue& queue, std::unique_ptr<ByteStream> stream,
                       std::string name, std::chrono::milliseconds write_stall, std::size_t bytes_per_turn)
    : loop_(loop),
      owner_(owner),
      queue_(queue),
      stream_(std::move(stream)),
      writer_(loop, owner, queue, *stream_, std::move(name), write_stall),
      bytes_per_turn_(bytes_per_turn) {}

void StreamPump::wait_for_input() {
  if (!stream_ || in_turn_ || stream_->waiting_to_read()) return;
  stream_->when_readable([self = self()] {
    if (self->stream_) self->run_turn();
  });
}

void StreamPump::run_turn_soon() {
  if (!std::exchange(turn_posted_, true)) loop_.post(turn_callback());
}

void StreamPump::run_turn_in_fair_queue(FairQueue::Client client) {
  if (!std::exchange(turn_posted_, true)) loop_.fair_queue().post(client, turn_callback());
}

Loop::Callback StreamPump::turn_callback() {
  return [self = self()] {
    self->turn_posted_ = false;
    if (self->stream_) self->run_turn();
  };
}

void StreamPump::run_turn() {
  run_turn([this] { return owner_.read_once(); });
}

void StreamPump::finish_output() {
  writer_.write_remaining();
  shutdown_output();
}

void StreamPump::shutdown_output() {
  writer_.stop();
  if (stream_) stream_->shutdown_output();
}

void StreamPump::close() {
  writer_.stop();
  if (!stream_) return;
  stream_->close();
  stream_.reset();
}

std::unique_ptr<ByteStream> StreamPump::release() {
  writer_.stop();
  if (!stream_) return nullptr;
  if (stream_->waiting_to_read()) stream_->when_readable(nullptr);
  if (stream_->waiting_to_write()) stream_->when_writable(nullptr);
  return std::move(stream_);
}

}  // namespace fairlead
