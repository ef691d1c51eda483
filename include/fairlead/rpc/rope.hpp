// Rope: an outgoing message as a few parts in order. Small parts are copied together; large ones are
// shared, so that a megabyte travels from one socket to another without being copied here.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/bytes.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::rpc {

class Rope {
 public:
  Rope() = default;
  // `one_line` promises that no raw line break stands between tokens; see Raw.
  explicit Rope(Bytes only, bool one_line = false) : head_(std::move(only)), one_line_(one_line) {}
  // A message that came in, to be sent on as it is.
  explicit Rope(const Message& message) : Rope(message.frame(), !message.has_line_break()) {}
  // The parts a Splice left of one.
  Rope(std::vector<Bytes> parts, bool one_line) : rest_(std::move(parts)), one_line_(one_line) {}

  void append(Bytes part, bool one_line = false) {
    rest_.push_back(std::move(part));
    one_line_ = one_line_ && one_line;
  }
  // What a layer above knows of it; travels with the rope. Null: nothing.
  const std::shared_ptr<const Annotation>& annotation() const noexcept { return annotation_; }
  void annotate(std::shared_ptr<const Annotation> annotation) { annotation_ = std::move(annotation); }

  std::size_t size() const noexcept;
  bool one_line() const noexcept { return one_line_; }

  template <class Visit>
  void each(Visit&& visit) const {
    if (!head_.empty()) visit(head_);
    for (const Bytes& part : rest_) visit(part);
  }
  Bytes joined() const;

 private:
  Bytes head_;
  std::vector<Bytes> rest_;  // empty for nearly every small message
  std::shared_ptr<const Annotation> annotation_;
  bool one_line_ = true;
};

// The messages this library writes itself. `params`, `result` and `data` may be absent.
Rope make_request(std::string_view id, std::string_view method, const json::Raw& params);
// The same with params that a Splice left in parts.
Rope make_request(std::string_view id, std::string_view method, std::vector<Bytes> params, bool one_line);
Rope make_notification(std::string_view method, const json::Raw& params);
Rope make_response(std::string_view id, const json::Raw& result);
// An empty id leaves the member out; plain JSON-RPC passes `null`.
Rope make_error(std::string_view id, std::int64_t code, std::string_view message, std::string_view data = {});

// The same message under another id; every other byte as it was. REQUIRES: the message has an id.
Rope with_id(const Message& message, std::string_view id);

}  // namespace fairlead::rpc
