// StreamableConnection: calls that are sent, and whose responses are handled, without a coroutine.
#include <new>

#include "protocol/header_values.hpp"
#include "transport/streamable_connection.hpp"

namespace fairlead::transport {

namespace {

constexpr std::string_view kLineEnd = "\r\n";

}  // namespace

bool StreamableConnection::start_directly(const PostPtr& post) {
  if (!direct_ || !is_plain_call(*post) || http_sse_post_url_ || post->cancelled()) return false;
  if (post->uses_session() && lost_session_revision_) return false;
  try {
    const std::optional<std::string_view> head = direct_head(post->message);
    if (!head || !post->start(*client_, url_, *head, post->message.body())) return false;
  } catch (const std::bad_alloc&) {
    return false;  // run_post() fails the call if there is still no memory
  }
  note_session_of(*post);
  if (!post->request_written()) return false;  // run_post() continues the exchange
  mark_written(*post);
  return true;
}

void StreamableConnection::receive_directly(Post& post) {
  if (post.cancelled()) return;  // see cancel_post()
  const auto keep_alive = self();
  const PostPtr received = posts_[post.index];
  Result<void> outcome;
  try {
    std::string_view body;
    switch (post.receive(max_parsed_at_once(), body)) {
      case http::DirectExchange::Received::nothing: return;
      case http::DirectExchange::Received::anything_else: return loop().spawn(run_post(keep_alive, received));
      case http::DirectExchange::Received::json: break;
    }
    outcome =
        handle_json_response(post, rpc::Message::parse(Bytes::copy_of(body), client_->options().limits));
  } catch (const std::bad_alloc&) {
    outcome = Error(ErrorKind::resource_exhausted, "resource exhausted: out of memory");
  }
  finish_post(received, outcome);
}

std::optional<std::string_view> StreamableConnection::direct_head(const HttpClientMessage& message) {
  if (state_.has_argument_headers(message)) return std::nullopt;
  const std::optional<std::string_view> name =
      message.modern_revision() ? message.name_header_value() : std::nullopt;
  const bool known = direct_head_ && direct_head_->method == message.method() &&
                     direct_head_->modern_revision == message.modern_revision() &&
                     direct_head_->session_version == state_.session_version() &&
                     direct_head_->named == name.has_value();
  if (!known) {
    http::ClientRequest request("POST", url_);
    request.headers = state_.constant_headers_for(message);
    DirectHead head{std::string(message.method()), std::optional<std::string>(message.modern_revision()),
                    state_.session_version(), name.has_value()};
    const Result<void> encoded = client_->append_fields(head.text, request);
    if (!encoded) return std::nullopt;
    if (name) {
      head.text.append(mcp::kNameHeader).append(": ");
    } else {
      head.text.resize(head.text.size() - kLineEnd.size());
    }
    head.size = head.text.size();
    direct_head_ = std::move(head);
  }
  std::string& text = direct_head_->text;
  text.resize(direct_head_->size);
  if (name) mcp::append_header_value(text, *name);
  return text;
}

}  // namespace fairlead::transport
