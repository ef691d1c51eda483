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

void StreamPump::run_soon() {
  if (!std::exchange(run_posted_, true)) loop_.post(posted_run());
}

void StreamPump::run_in_turn_of(FairQueue::Client client) {
  if (!std::exchange(run_posted_, true)) loop_.fair().post(client, posted_run());
}

Loop::Callback StreamPump::posted_run() {
  return [self = self()] {
    self->run_posted_ = false;
    if (self->stream_) self->run_turn();
  };
}

void StreamPump::run_turn() {
  run_turn([this] { return owner_.read_once(); });
}

void StreamPump::finish_output() {
  writer_.write_rest();
  shut_output();
}

void StreamPump::shut_output() {
  writer_.stop();
  if (stream_) stream_->shut_output();
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
