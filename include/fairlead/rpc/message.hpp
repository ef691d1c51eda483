// Message: one JSON-RPC message as it came in. It is scanned exactly once, when it is made; from then on it
// is one immutable frame and the ranges of its parts. Nothing is decoded until somebody asks.
//
// What is not a message still becomes one, of kind `malformed`, so that whoever owns the connection
// decides what to do about it: answer, count, or hang up.
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
#include "fairlead/json/indexed.hpp"
#include "fairlead/json/member_index.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::rpc {

enum class Kind : std::uint8_t {
  request,       // method and id
  notification,  // method, no id
  response,      // id and a result
  error,         // an error, with an id, a null id or none
  batch,         // an array of messages
  malformed,     // none of these; problem() says why
};

// What a layer above has read in a message, carried with it so that it is read once.
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
  // Scans `frame` and classifies it. Never fails: what is wrong is in problem(). MessageParser does the same
  // in steps, for large frames.
  static Message parse(Bytes frame, const Limits& limits = {});
  // For a frame that is known to be valid JSON, such as a message of our own: finds the same parts several
  // times faster. A batch is malformed. `one_line` promises that the frame has no raw line break.
  static Message of_valid(Bytes frame, bool one_line);
  // For a frame that could not even be read.
  static Message malformed(Error problem, Bytes excerpt = {});
  // For one that was refused for its size: the beginning and the end of `frame` are kept and tell, mostly, id
  // and method.
  static Message too_large(Error problem, std::string_view frame);

  Kind kind() const noexcept { return kind_; }
  bool is(Kind kind) const noexcept { return kind_ == kind; }
  const Bytes& frame() const noexcept { return frame_; }

  // As spelled, with its quotes if it is a string; `null` for a null id; empty when there is none. A
  // malformed message may still have an id, so that it can be answered.
  std::string_view id() const noexcept { return id_; }
  // Escapes decoded. Empty unless request or notification, or malformed where it could be made out.
  std::string_view method() const noexcept { return unescaped_method_ ? *unescaped_method_ : method_; }

  // Parts of the frame; absent when they were.
  json::Raw params() const { return slice(params_); }
  json::Raw result() const { return slice(result_); }  // a response without result and error reads as null
  json::Raw error_object() const { return slice(error_); }
  // A response that has neither `result` nor `error`: a null result for the call it belongs to, and an
  // invalid request otherwise.
  bool lacks_result() const noexcept { return lacks_result_; }
  // The whole frame as a JSON value, whether it is a JSON-RPC message or not; absent if it is not valid JSON.
  json::Raw value() const {
    return is(Kind::malformed) && !valid_json_ ? json::Raw() : json::Raw::trusted(frame_, !line_break_);
  }
  std::string_view params_text() const noexcept { return params_; }
  std::string_view result_text() const noexcept { return result_; }
  // The members of `params` or of `result`, whichever the message has, as the scan found them; no members if
  // that is no object.
  const json::MemberIndex& members() const noexcept { return members_; }
  // The member of that name of an object in `params`; absent also if there are more members than are indexed
  // (json::MemberIndex::kMaxMembers). Does not read the text.
  json::View param(std::string_view key) const;
  // The result and its members.
  json::Indexed indexed_result() const { return json::Indexed(result(), members_); }

  // Travels with the message and its copies. Null: nothing was attached.
  const std::shared_ptr<const Annotation>& annotation() const noexcept { return annotation_; }
  void annotate(std::shared_ptr<const Annotation> annotation) { annotation_ = std::move(annotation); }

  // The remote error of a kind `error` message, as an Error of kind remote.
  Error remote_error() const;
  // Why a malformed message is one: kind parse (not JSON), validation (JSON, but no JSON-RPC) or
  // frame_too_large. It carries the code to answer with.
  const Error& problem() const noexcept { return *problem_; }

  // The messages of a batch, each a part of this frame.
  const std::vector<Message>& batch() const noexcept { return *batch_; }

  // Raw line breaks between tokens: they are replaced before it can travel as one line.
  bool has_line_break() const noexcept { return line_break_; }

 private:
  friend class Envelope;
  friend class FrameReader;
  json::Raw slice(std::string_view part) const {
    return part.empty() ? json::Raw() : json::Raw::trusted(frame_.part(part), !line_break_);
  }

  Kind kind_ = Kind::malformed;
  bool line_break_ = false;
  bool lacks_result_ = false;
  bool valid_json_ = false;  // of a malformed message: JSON, but no JSON-RPC
  Bytes frame_;
  std::string_view id_;
  std::string_view method_;  // inside of the string, as spelled
  std::string_view params_;
  std::string_view result_;
  std::string_view error_;
  json::MemberIndex members_;
  std::shared_ptr<const std::string> unescaped_method_;  // only when the spelling has escapes
  std::shared_ptr<const Error> problem_;
  std::shared_ptr<const std::vector<Message>> batch_;
  std::shared_ptr<const Annotation> annotation_;
};

}  // namespace fairlead::rpc
