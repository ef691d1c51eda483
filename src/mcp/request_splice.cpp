#include "mcp/request_splice.hpp"

#include <utility>

namespace fairlead::mcp {

namespace {

constexpr std::size_t kMaxJoinedBytes = 4u << 10;

}  // namespace

RequestSplice::RequestSplice(const RequestText& request, const CallFacts& facts,
                             ForwardedRequest::EncodeOptions options)
    : facts_(facts), splice_(request.frame), one_line_(!request.has_line_break) {
  splice_.replace(request.id, options.id);
  if (!facts.progress_token.absent()) {
    splice_.replace(facts.progress_token.text(), options.id);
  } else if (options.add_progress_token) {
    new_token_ = options.id;
  }
}

void RequestSplice::remove_member(json::View value) {
  if (!value.absent()) splice_.remove_member(value.text());
}

void RequestSplice::add_token_to_meta() {
  if (new_token_.empty()) return;
  splice_.insert_member_text(facts_.meta.text(), "\"progressToken\":", std::exchange(new_token_, {}), {});
}

// Does nothing if `_meta` is present but not an object: the server will reject such a request.
void RequestSplice::add_to_meta(std::string_view key, std::string_view value) {
  if (facts_.meta.is(json::Type::object)) {
    add_token_to_meta();
    splice_.insert_member(facts_.meta.text(), key, value);
  } else if (facts_.meta.absent()) {
    new_members_.append(",\"").append(key).append("\":").append(value);
  }
}

void RequestSplice::add_to_params(std::string_view key, std::string_view value) {
  splice_.insert_member(facts_.params.text(), key, value);
}

void RequestSplice::add_meta() {
  if (new_token_.empty() && new_members_.empty()) return;
  const std::string_view head = new_token_.empty() ? "\"_meta\":{" : "\"_meta\":{\"progressToken\":";
  if (new_token_.empty()) new_members_.erase(0, 1);
  new_members_ += '}';
  if (facts_.params.is(json::Type::object)) {
    splice_.insert_member_text(facts_.params.text(), head, new_token_, new_members_);
  } else if (facts_.params.absent()) {
    const json::View whole(splice_.text());
    splice_.insert_member(whole.text(), "params",
                          Bytes::join("{", head, new_token_, new_members_, "}").view());
  }
}

rpc::Rope RequestSplice::finish() {
  if (facts_.meta.is(json::Type::object)) {
    add_token_to_meta();
  } else if (facts_.meta.absent()) {
    add_meta();
  }
  // Copying a small request costs less than writing its parts.
  if (splice_.max_size() <= kMaxJoinedBytes) return rpc::Rope(splice_.joined(), one_line_);
  return rpc::Rope(splice_.parts(), one_line_);
}

}  // namespace fairlead::mcp
