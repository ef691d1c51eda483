// DescriptorStream: a ByteStream over one descriptor, or over one for each direction, such as a pair of
// pipes. Private to the library.
#pragma once

#include <optional>
#include <string>

#include "connection/byte_stream.hpp"

namespace fairlead {

class DescriptorStream final : public ByteStream {
 public:
  // Without `out`, `in` is used both ways. `remote` names the other side in errors.
  DescriptorStream(Descriptor in, std::optional<Descriptor> out, std::string remote);

  // A connection that was reset, and a terminal whose other end was closed, have ended: no error.
  Io read(std::span<char> into) override;
  // `ended`: the other side has closed its end.
  Io write(std::span<const iovec> parts) override;
  void when_readable(Descriptor::Ready ready) override { in_.when_readable(std::move(ready)); }
  void when_writable(Descriptor::Ready ready) override { out().when_writable(std::move(ready)); }
  bool waiting_to_read() const noexcept override { return in_.waiting_to_read(); }
  bool waiting_to_write() const noexcept override {
    return out_ ? out_->waiting_to_write() : in_.waiting_to_write();
  }
  void shut_output() override;
  void close() override;
  std::string remote() const override { return remote_; }

 private:
  Descriptor& out() noexcept { return out_ ? *out_ : in_; }

  Descriptor in_;
  std::optional<Descriptor> out_;
  std::string remote_;
};

}  // namespace fairlead
