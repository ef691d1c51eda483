// RequestSplice: edits a request of another peer before it is forwarded to a server, and leaves every other
// byte unchanged. Private to the library.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/mcp/forwarded_request.hpp"
#include "json/splice.hpp"

namespace fairlead::mcp {

// The parts of a received request that are needed to edit it.
struct RequestText {
  RequestText(const rpc::Message& request)  // NOLINT: implicit, because it stands for the request
      : frame(request.frame()), id(request.id()), has_line_break(request.has_line_break()) {}

  Bytes frame;
  std::string_view id;  // part of the frame
  bool has_line_break;  // see rpc::Message
};

class RequestSplice {
 public:
  // Replaces the id and the progress token of the request by the id in `options`. REQUIRES: `facts` and the
  // id outlive this object, and `facts` was collected from `request`.
  RequestSplice(const RequestText& request, const CallFacts& facts, ForwardedRequest::EncodeOptions options);

  // Replaces a value. `value` is one of the views in `facts`. Does nothing if it is absent.
  void replace(json::View value, Bytes replacement) { splice_.replace(value.text(), std::move(replacement)); }
  // The same by the JSON string of `text`. REQUIRES: `text` outlives this object.
  void replace_with_string(json::View value, std::string_view text) {
    splice_.replace_with_string(value.text(), text);
  }
  // Removes a value and its key. Does nothing if it is absent.
  void remove_member(json::View value);
  // Adds a member to `_meta`, which is created if there is none. REQUIRES: `key` needs no escaping.
  void add_to_meta(std::string_view key, std::string_view value);
  // Adds a member to `params`. REQUIRES: `params` is an object.
  void add_to_params(std::string_view key, std::string_view value);

  // Returns the edited request. Called once.
  rpc::Rope finish();

 private:
  // Adds the progress token to a `_meta` that is present. Does nothing if none is to be added.
  void add_token_to_meta();
  // Adds a `_meta` with the progress token and with new_members_.
  void add_meta();

  const CallFacts& facts_;
  json::Splice splice_;
  std::string_view new_token_;  // the progress token that is still to be added; empty if there is none
  bool one_line_;
  // The members of a `_meta` to be created, except the progress token; a comma precedes each.
  std::basic_string<char, std::char_traits<char>, BlockAllocator<char>> new_members_;
};

}  // namespace fairlead::mcp
