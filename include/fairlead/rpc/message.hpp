// Message: a received JSON-RPC message. It is scanned exactly once, when it is created, and then consists of
// the immutable frame and views of its members. Values are decoded only on request.
//
// A frame that is not a JSON-RPC message becomes a Message of kind `malformed`, so that the owner of the
// connection decides how to handle it: respond with an error, count it, or close the connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/bytes.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/indexed_raw.hpp"
#include "fairlead/json/member_index.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::rpc {

enum class Kind : std::uint8_t {
  request,       // has a method and an id
  notification,  // has a method and no id
  response,      // has an id and a result
  error,         // has an error object and an id, a null id, or no id
  batch,         // an array of messages
  malformed,     // not a JSON-RPC message; problem() is the reason
};

// Data that a higher layer extracted from a message and attached to it, so that it is extracted only once.
class Annotation {
 public:
  virtual ~Annotation() = default;

 protected:
  Annotation() = default;
  Annotation(const Annotation&) = default;
};

class Message {
 public:
  Message() = default;
  // Scans and classifies `frame`. Never fails: an invalid frame yields a message of kind malformed. For large
  // frames use MessageParser, which does the same in steps.
  static Message parse(Bytes frame, const Limits& limits = {});
  // The same several times faster, without validation. Does not support batches: they become malformed.
  // REQUIRES: `frame` is valid JSON, such as a message written by this library; if `one_line`, it has no raw
  // line break.
  static Message parse_trusted(Bytes frame, bool one_line);
  // Creates a malformed message for a frame that could not be decoded.
  static Message malformed(Error problem, Bytes excerpt = {});
  // Creates a malformed message for a frame that exceeds the size limit. Keeps only the beginning and the end
  // of `frame`, where id and method usually are.
  static Message too_large(Error problem, std::string_view frame);

  Kind kind() const noexcept { return kind_; }
  bool is(Kind kind) const noexcept { return kind_ == kind; }
  const Bytes& frame() const noexcept { return frame_; }

  // Returns the id in its original spelling: including the quotes of a string, `null` for a null id, empty if
  // there is none. A malformed message may have an id; an error response can be sent with it.
  std::string_view id() const noexcept { return id_; }
  // Returns the unescaped method of a request or notification, and of a malformed message if it was found.
  // Otherwise returns an empty string.
  std::string_view method() const noexcept {
    return rare_ && !rare_->unescaped_method.empty() ? std::string_view(rare_->unescaped_method) : method_;
  }

  // Return slices of the frame; absent if the message has no such member.
  json::Raw params() const { return slice(params_); }
  json::Raw result() const { return slice(result_); }  // `null` if lacks_result()
  json::Raw error_object() const { return slice(error_); }
  // Returns true for a response that has neither `result` nor `error`. If its id belongs to a call, the
  // result of the call is null; otherwise the message is an invalid request.
  bool lacks_result() const noexcept { return lacks_result_; }
  // Returns the whole frame as a JSON value, even if the frame is not a JSON-RPC message. Absent if the frame
  // is not valid JSON.
  json::Raw value() const {
    return is(Kind::malformed) && !valid_json_ ? json::Raw() : json::Raw::trusted(frame_, !line_break_);
  }
  std::string_view params_text() const noexcept { return params_; }
  std::string_view result_text() const noexcept { return result_; }
  // Returns the index of the members of `params` or `result`, whichever the message has. The index is empty
  // if that value is not an object.
  const json::MemberIndex& members() const noexcept { return members_; }
  // Returns the member `key` of `params` by the index, without scanning text. Absent if there is no such
  // member, or if `params` has more than json::MemberIndex::kMaxMembers members.
  json::View param(std::string_view key) const;
  // Returns the result together with the index of its members.
  json::IndexedRaw indexed_result() const { return json::IndexedRaw(result(), members_); }

  // The annotation is shared with copies of the message. Null if none was attached.
  const std::shared_ptr<const Annotation>& annotation() const noexcept { return annotation_; }
  void annotate(std::shared_ptr<const Annotation> annotation) { annotation_ = std::move(annotation); }

  // Returns the error object as an Error of kind remote. REQUIRES: is(Kind::error).
  Error remote_error() const;
  // Returns why the message is malformed: kind parse (not JSON), validation (JSON but not JSON-RPC) or
  // frame_too_large. Its detail contains the code to respond with. REQUIRES: is(Kind::malformed).
  const Error& problem() const noexcept { return *rare_->problem; }

  // Returns the messages of a batch, whose frames are slices of this frame. REQUIRES: is(Kind::batch).
  const std::vector<Message>& batch() const noexcept { return rare_->batch; }

  // Returns true if there are raw line breaks between tokens. They must be replaced before the frame is sent
  // with line framing.
  bool has_line_break() const noexcept { return line_break_; }

 private:
  friend class MessageBuilder;
  friend class FrameReader;
  // What few messages have. Shared by copies of the message; not modified after the first copy.
  struct Rare {
    std::string unescaped_method;  // empty unless the spelling of the method has escapes
    std::optional<Error> problem;
    std::vector<Message> batch;
  };
  Rare& rare();  // creates it if there is none
  bool has_problem() const noexcept { return rare_ && rare_->problem; }
  static void read_object(Bytes frame, const Limits& limits, Message& message);
  json::Raw slice(std::string_view part) const {
    return part.empty() ? json::Raw() : json::Raw::trusted(frame_.part(part), !line_break_);
  }

  Kind kind_ = Kind::malformed;
  bool line_break_ = false;
  bool lacks_result_ = false;
  bool valid_json_ = false;  // malformed message: the frame is JSON, but not JSON-RPC
  Bytes frame_;
  std::string_view id_;
  std::string_view method_;  // without its quotes, in the original spelling
  std::string_view params_;
  std::string_view result_;
  std::string_view error_;
  json::MemberIndex members_;
  std::shared_ptr<Rare> rare_;
  std::shared_ptr<const Annotation> annotation_;
};

}  // namespace fairlead::rpc
