#include "mcp/request_splice.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::size_t kMaxJoinedBytes = 4u << 10;

}  // namespace

RequestSplice::RequestSplice(RequestText request, const CallFacts& facts,
                             ForwardedRequest::EncodeOptions options)
    : request_(std::move(request)), facts_(facts), splice_(request_.frame) {
  const Bytes id = Bytes::copy_of(options.id);
  splice_.replace(request_.id, id);
  if (!facts.progress_token.absent()) {
    splice_.replace(facts.progress_token.text(), id);
  } else if (options.add_progress_token) {
    add_to_meta("progressToken", options.id);
  }
}

void RequestSplice::remove_member(json::View value) {
  if (!value.absent()) splice_.remove_member(value.text());
}

// Does nothing if `_meta` is present but not an object: the server will reject such a request.
void RequestSplice::add_to_meta(std::string_view key, std::string_view value) {
  if (facts_.meta.is(json::Type::object)) {
    splice_.insert_member(facts_.meta.text(), key, value);
  } else if (facts_.meta.absent()) {
    if (new_meta_.empty()) new_meta_.reserve(64);
    new_meta_ += new_meta_.empty() ? "{\"" : ",\"";
    new_meta_.append(key).append("\":").append(value);
  }
}

void RequestSplice::add_to_params(std::string_view key, std::string_view value) {
  splice_.insert_member(facts_.params.text(), key, value);
}

rpc::Rope RequestSplice::finish() {
  if (!new_meta_.empty()) new_meta_ += '}';
  if (!new_meta_.empty() && facts_.params.is(json::Type::object)) {
    splice_.insert_member(facts_.params.text(), "_meta", new_meta_);
  } else if (!new_meta_.empty() && facts_.params.absent()) {
    const json::View whole(request_.frame.view());
    splice_.insert_member(whole.text(), "params", Bytes::join("{\"_meta\":", new_meta_, "}").view());
  }
  const bool one_line = !request_.has_line_break;
  // Copying a small request costs less than writing its parts.
  if (splice_.max_size() <= kMaxJoinedBytes) return rpc::Rope(splice_.joined(), one_line);
  return rpc::Rope(splice_.parts(), one_line);
}

}  // namespace fairlead::mcp
