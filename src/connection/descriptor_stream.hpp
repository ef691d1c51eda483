// DescriptorStream: a ByteStream over one descriptor, or over one for each direction, such as a pair of
// pipes. Private to the library.
#pragma once

#include <optional>
#include <string>

#include "connection/byte_stream.hpp"

namespace fairlead {

class DescriptorStream final : public ByteStream {
 public:
  // If `out` is nullopt, `in` is used for both directions. `remote_name` is the remote peer in errors.
  DescriptorStream(Descriptor in, std::optional<Descriptor> out, std::string remote_name);

  // Returns `ended` also for a connection that the remote peer reset, and for a terminal that was closed.
  IoResult read(std::span<char> into) override;
  // Returns `ended` if the remote peer has closed its end.
  IoResult write(std::span<const iovec> parts) override;
  void when_readable(Descriptor::ReadyCallback ready) override { in_.when_readable(std::move(ready)); }
  void when_writable(Descriptor::ReadyCallback ready) override { out().when_writable(std::move(ready)); }
  bool waiting_to_read() const noexcept override { return in_.waiting_to_read(); }
  bool waiting_to_write() const noexcept override {
    return out_ ? out_->waiting_to_write() : in_.waiting_to_write();
  }
  std::optional<std::size_t> unread_output() const override;
  void shutdown_output() override;
  void close() override;
  std::string remote_name() const override { return remote_name_; }

 private:
  Descriptor& out() noexcept { return out_ ? *out_ : in_; }

  Descriptor in_;
  std::optional<Descriptor> out_;
  std::string remote_name_;
  bool short_read_drains_;  // the input is a byte stream, so a read that is not full has read everything
};

}  // namespace fairlead
