// Rope: an outgoing message as a sequence of byte buffers, as in the data structure of that name. Small parts
// are copied into one buffer; large parts are shared, so that a large body is forwarded from one socket to
// another without being copied.
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
  // REQUIRES: if `one_line` is true, `only` has no raw line break between tokens (see json::Raw).
  explicit Rope(Bytes only, bool one_line = false) : head_(std::move(only)), one_line_(one_line) {}
  // Forwards a received message unchanged.
  explicit Rope(const Message& message) : Rope(message.frame(), !message.has_line_break()) {}
  // Concatenates `parts`, for example the output of a json::Splice.
  Rope(std::vector<Bytes> parts, bool one_line) : rest_(std::move(parts)), one_line_(one_line) {}

  void append(Bytes part, bool one_line = false) {
    rest_.push_back(std::move(part));
    one_line_ = one_line_ && one_line;
  }
  // Data that a higher layer attached; shared with copies of the rope. Null if none was attached.
  const std::shared_ptr<const Annotation>& annotation() const noexcept { return annotation_; }
  void annotate(std::shared_ptr<const Annotation> annotation) { annotation_ = std::move(annotation); }

  std::size_t size() const noexcept;
  // Returns true if the text certainly has no raw line break.
  bool is_one_line() const noexcept { return one_line_; }

  // Calls `visit(const Bytes&)` for each part in order.
  template <class Visit>
  void each(Visit&& visit) const {
    if (!head_.empty()) visit(head_);
    for (const Bytes& part : rest_) visit(part);
  }
  // Returns all parts as one buffer; copies them if there are several.
  Bytes joined() const;

 private:
  Bytes head_;
  std::vector<Bytes> rest_;  // usually empty for small messages
  std::shared_ptr<const Annotation> annotation_;
  bool one_line_ = true;
};

// Serialize messages. `params`, `result` and `data` may be absent. `id` is raw JSON.
Rope make_request(std::string_view id, std::string_view method, const json::Raw& params);
// The same with params in several parts, as a json::Splice produces them.
Rope make_request(std::string_view id, std::string_view method, std::vector<Bytes> params, bool one_line);
Rope make_notification(std::string_view method, const json::Raw& params);
Rope make_response(std::string_view id, const json::Raw& result);
// An empty `id` omits the member `id`; plain JSON-RPC passes `null`.
Rope make_error(std::string_view id, std::int64_t code, std::string_view message, std::string_view data = {});

// Returns the message with its id replaced and all other bytes unchanged. REQUIRES: the message has an id.
Rope with_id(const Message& message, std::string_view id);

}  // namespace fairlead::rpc
