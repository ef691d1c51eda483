#include "fairlead/rpc/message.hpp"

#include <algorithm>
#include <cstring>

#include "fairlead/json/view.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "json/object_scan.hpp"
#include "json/walk.hpp"
#include "rpc/message_parser.hpp"
#include "rpc/truncated_frame.hpp"

namespace fairlead::rpc {

namespace {

// If an error object is larger, only its code is decoded; message and data are dropped.
constexpr std::size_t kMaxErrorBytes = 256u << 10;
constexpr std::size_t kMaxErrorMembers = 1000;  // further members of an error object are not read
constexpr std::size_t kMaxMethodBytes = 64u << 10;

enum class Member : std::uint8_t { jsonrpc, id, method, params, result, error, other };

template <std::size_t kSize>
bool is_key(const char* key, const char (&name)[kSize]) noexcept {
  return std::memcmp(key, name, kSize - 1) == 0;  // inlined, because the size is a constant
}

Member member_named(std::string_view key) noexcept {
  const char* const p = key.data();
  switch (key.size()) {
    case 2: return is_key(p, "id") ? Member::id : Member::other;
    case 5: return is_key(p, "error") ? Member::error : Member::other;
    case 6:
      return is_key(p, "method")   ? Member::method
             : is_key(p, "params") ? Member::params
             : is_key(p, "result") ? Member::result
                                   : Member::other;
    case 7: return is_key(p, "jsonrpc") ? Member::jsonrpc : Member::other;
    default: return Member::other;
  }
}

constexpr unsigned bit(Member member) noexcept {
  return 1u << static_cast<unsigned>(member);
}

bool is_id(std::string_view value) noexcept {
  const char c = value.front();
  return c == '"' || c == '-' || (c >= '0' && c <= '9') || c == 'n';
}

bool is_structured(std::string_view value) noexcept {
  return value.front() == '{' || value.front() == '[';
}

Error not_a_message(std::string reason) {
  return invalid_request("Invalid Request: " + std::move(reason));
}

// Returns `problem`, the problem of a received frame, with the JSON-RPC code to respond with. to_wire()
// cannot choose the code by the kind of the error, because an error of the same kind from a handler is
// internal.
Error with_rpc_code(Error problem) {
  if (problem.detail().rpc_code) return problem;
  switch (problem.kind()) {
    case ErrorKind::parse: return std::move(problem).with([](ErrorDetail& d) { d.rpc_code = kParseError; });
    case ErrorKind::frame_too_large:
      return std::move(problem).with([](ErrorDetail& d) { d.rpc_code = kInvalidRequest; });
    default: return problem;
  }
}

bool is_indexed(Member member) noexcept {
  return member == Member::params || member == Member::result;
}

}  // namespace

// Builds a Message from the members of its JSON object. Errors are recorded in the message, so that one
// invalid message of a batch does not affect the others.
class MessageBuilder {
 public:
  explicit MessageBuilder(Message& message) : message_(message) {}

  static Member member(std::string_view key, bool escaped) {
    if (!escaped) return member_named(key);
    constexpr std::size_t kMaxSpellingBytes = 6 * 7;  // "jsonrpc" with each character as \uXXXX
    return key.size() > kMaxSpellingBytes ? Member::other : member_named(json::unescape(key));
  }

  // Returns the member index of `params` or `result`.
  json::MemberIndex& index() noexcept { return message_.members_; }

  [[gnu::always_inline]] void add_member(Member member, std::string_view value) {
    if (member == Member::other) return;
    // Two JSON readers may disagree about the value of a repeated key, so a gateway must not forward such a
    // message.
    if (seen_ & bit(member)) {
      if (member == Member::id) message_.id_ = {};
      return reject("a member is repeated");
    }
    seen_ |= bit(member);
    switch (member) {
      case Member::jsonrpc:
        if (!is_version(value)) reject("jsonrpc is not \"2.0\"");
        break;
      case Member::id:
        if (!is_id(value)) return reject("id is neither a string nor a number");
        message_.id_ = value;
        break;
      case Member::method: set_method(value); break;
      case Member::params:
        if (!is_structured(value)) return reject("params is neither an object nor an array");
        message_.params_ = value;
        break;
      case Member::result: message_.result_ = value; break;
      case Member::error:
        if (value.front() != '{') return reject("error is not an object");
        message_.error_ = value;
        break;
      case Member::other: break;
    }
  }

  void finish() {
    if (!message_.has_problem()) classify();
  }

  void reject(const char* reason) {
    if (!message_.has_problem()) message_.rare().problem = not_a_message(reason);
  }

 private:
  static bool is_version(std::string_view value) {
    return (value.size() == 5 && is_key(value.data(), "\"2.0\"")) || is_escaped_version(value);
  }
  [[gnu::noinline]] static bool is_escaped_version(std::string_view value) {
    constexpr std::size_t kMaxSpellingBytes = 6 * 3 + 2;
    return value.size() <= kMaxSpellingBytes && json::View(value).as_string() == "2.0";
  }

  void set_method(std::string_view value) {
    if (value.front() != '"') return reject("method is not a string");
    if (value.size() > kMaxMethodBytes) return reject("method is over the limit max_method_bytes (65536)");
    message_.method_ = value.substr(1, value.size() - 2);
    if (message_.method_.find('\\') != std::string_view::npos) {
      message_.rare().unescaped_method = json::unescape(message_.method_);
    }
  }

  void classify() {
    const bool has_id = seen_ & bit(Member::id);
    const bool has_result = seen_ & bit(Member::result);
    const bool has_error = seen_ & bit(Member::error);
    if (!(seen_ & bit(Member::jsonrpc))) return reject("jsonrpc is missing");
    if (seen_ & bit(Member::method)) {
      if (has_result || has_error) return reject("both a request and a response");
      message_.kind_ = has_id ? Kind::request : Kind::notification;
    } else if (has_result && has_error) {
      reject("both a result and an error");
    } else if (has_error) {
      message_.kind_ = Kind::error;
    } else if (has_id) {
      message_.kind_ = Kind::response;
      message_.lacks_result_ = !has_result;
      if (!has_result) message_.result_ = "null";
    } else {
      reject("neither method nor id");
    }
  }

  Message& message_;
  unsigned seen_ = 0;
};

// Reads one message object at the position of a scanner. After a syntax error, Scanner::failed() is true.
class MessageReader {
 public:
  // `text` is the text that the scanner reads.
  MessageReader(json::Scanner& scanner, std::string_view text, Message& message)
      : scanner_(scanner), text_(text), builder_(message) {}

  // Returns false if the scanner has paused; the caller calls read() again then.
  bool read() {
    if (!inside_object_ && scanner_.peek() != json::Type::object) {
      std::string_view skipped;
      if (scanner_.value(skipped)) builder_.reject("not an object");
      return !scanner_.paused();
    }
    if (!std::exchange(inside_object_, true)) scanner_.begin_object();
    read_members();
    if (scanner_.paused()) return false;
    if (!scanner_.failed()) builder_.finish();
    return true;
  }

 private:
  void read_members() {
    std::string_view value;
    while (has_key_ || scanner_.next_member(key_, escaped_)) {
      if (!std::exchange(has_key_, true)) member_ = MessageBuilder::member(key_, escaped_);
      if (!read_value(value)) return;
      has_key_ = false;
      builder_.add_member(member_, value);
    }
  }

  bool read_value(std::string_view& value) {
    if (!indexing_) {
      if (!is_indexed(member_) || scanner_.paused() || scanner_.peek() != json::Type::object)
        return scanner_.value(value);
      indexing_.emplace(builder_.index(), text_);
    }
    if (!indexing_->scan(scanner_, value)) return false;
    indexing_.reset();
    return true;
  }

  json::Scanner& scanner_;
  std::string_view text_;
  MessageBuilder builder_;
  bool inside_object_ = false;
  bool has_key_ = false;  // key_ belongs to a member whose value is not completely scanned
  bool escaped_ = false;
  Member member_ = Member::other;
  std::string_view key_;
  std::optional<json::MemberIndex::Builder> indexing_;  // set while params or result is being scanned
};

// Reads one frame: a message object or a batch.
class FrameReader {
 public:
  // REQUIRES: `message` and `limits` outlive this object.
  FrameReader(Message& message, Bytes frame, const Limits& limits)
      : message_(message), limits_(limits), scanner_(frame.view(), limits.max_depth) {
    message_.frame_ = std::move(frame);
  }

  void pause_with(json::ScanPauses& pauses) {
    pauses_ = &pauses;
    scanner_.pause_with(pauses);
  }

  // Returns true when the message is complete. Returns false if the scanner has paused; the caller calls
  // read() again then.
  bool read() {
    const bool complete = validating_ ? validate() : batch_ ? read_batch() : read_first();
    if (complete) finish();
    return complete;
  }

 private:
  bool read_first() {
    if (!reader_ && scanner_.peek() == json::Type::array) {
      scanner_.begin_array();
      batch_.emplace();
      return read_batch();
    }
    if (!reader_) reader_.emplace(scanner_, message_.frame_.view(), message_);
    return reader_->read();
  }

  bool read_batch() {
    while (reader_ || scanner_.next_element()) {
      if (!reader_) {
        if (batch_->size() == limits_.max_batch_messages) return reject_batch();
        scanner_.peek();  // advances to the first byte of the element
        element_begin_ = scanner_.offset();
        reader_.emplace(scanner_, message_.frame_.view(), batch_->emplace_back());
      }
      if (!reader_->read()) return false;
      reader_.reset();
      finish_element(batch_->back());
    }
    if (batch_->empty()) {
      message_.rare().problem = not_a_message("an empty batch");
    } else {
      message_.kind_ = Kind::batch;
      message_.rare().batch = std::move(*batch_);
    }
    return true;
  }

  void finish_element(Message& element) {
    element.frame_ = message_.frame_.part(
        message_.frame_.view().substr(element_begin_, scanner_.offset() - element_begin_));
    element.line_break_ = scanner_.saw_line_break();
    element.valid_json_ = true;  // if it is not, the whole frame is malformed and this element is not used
  }

  // Rejects a batch with too many messages. The remaining messages are not read one by one, which could take
  // long, but the rest of the frame is validated: a frame that is not JSON must be reported as a parse error.
  bool reject_batch() {
    message_.rare().problem = not_a_message("more messages in a batch than max_batch_messages (" +
                                            std::to_string(limits_.max_batch_messages) + ")");
    scanner_ = json::Scanner(message_.frame_.view(), limits_.max_depth);
    if (pauses_) scanner_.pause_with(*pauses_);
    validating_ = true;
    return validate();
  }

  bool validate() {
    std::string_view skipped;
    scanner_.value(skipped);
    return !scanner_.paused();
  }

  void finish() {
    if (!scanner_.finish()) {
      message_ = Message::malformed(scanner_.error(), std::move(message_.frame_));
      return;
    }
    message_.valid_json_ = true;
    if (message_.has_problem()) message_.kind_ = Kind::malformed;
    message_.line_break_ = scanner_.saw_line_break();
  }

  Message& message_;
  const Limits& limits_;
  json::Scanner scanner_;
  json::ScanPauses* pauses_ = nullptr;
  bool validating_ = false;
  std::optional<MessageReader> reader_;  // reads the current message
  std::size_t element_begin_ = 0;        // in a batch: the offset of the current message in the frame
  std::optional<std::vector<Message>> batch_;
};

Message::Rare& Message::rare() {
  if (!rare_) rare_ = std::make_shared<Rare>();
  return *rare_;
}

// Reads a frame that is one object, at once.
[[gnu::always_inline]] inline void Message::read_object(Bytes frame, const Limits& limits, Message& message) {
  message.frame_ = std::move(frame);
  json::Scanner scanner(message.frame_.view(), limits.max_depth);
  json::ObjectScan scan(scanner);
  MessageBuilder builder(message);
  std::string_view value;
  for (bool more = scan.begin_object(); more; more = scan.next_member()) {
    if (!scan.read_key()) break;
    const Member member = MessageBuilder::member(scan.key(), scan.escaped());
    const bool indexed = is_indexed(member) && scan.at_object();
    if (!(indexed ? scan.read_object(builder.index(), value) : scan.read_value(value))) break;
    builder.add_member(member, value);
  }
  if (!scan.finish()) {
    message = malformed(scanner.error(), std::move(message.frame_));
    return;
  }
  builder.finish();
  message.valid_json_ = true;
  message.line_break_ = scanner.saw_line_break();
}

Message Message::parse(Bytes frame, const Limits& limits) {
  Message message;
  if (frame.view().starts_with('{') && frame.view().ends_with('}')) {
    read_object(std::move(frame), limits, message);
  } else {
    FrameReader(message, std::move(frame), limits).read();
  }
  return message;
}

Message Message::parse_trusted(Bytes frame, bool one_line) {
  Message message;
  message.frame_ = std::move(frame);
  message.line_break_ = !one_line;
  message.valid_json_ = true;
  MessageBuilder builder(message);
  const json::View whole(message.frame_.view());
  if (whole.is(json::Type::object)) {
    json::MemberWalk walk(whole.text());
    while (walk.next_key()) {
      const Member member = MessageBuilder::member(walk.key(), walk.escaped());
      std::string_view value = walk.rest();
      if (is_indexed(member) && value.front() == '{') {
        builder.index() = json::MemberIndex::of_prefix(value, value);
        walk.set_value_end(value.data() + value.size());
      } else {
        walk.set_value_end(json::skip_value(value.data(), value.data() + value.size()));
      }
      builder.add_member(member, walk.value());
    }
    builder.finish();
  } else {
    builder.reject("not an object");
  }
  return message;
}

struct MessageParser::State {
  State(Bytes frame, const Limits& given, std::size_t bytes_per_step)
      : limits(given), pauses(bytes_per_step), reader(message, std::move(frame), limits) {
    reader.pause_with(pauses);
  }
  Limits limits;
  json::ScanPauses pauses;
  Message message;
  FrameReader reader;
};

MessageParser::MessageParser(Bytes frame, const Limits& limits, std::size_t bytes_per_step)
    : state_(std::make_unique<State>(std::move(frame), limits, bytes_per_step)) {}
MessageParser::~MessageParser() = default;

std::optional<Message> MessageParser::step() {
  if (!state_->reader.read()) return std::nullopt;
  return std::move(state_->message);
}

Message Message::malformed(Error problem, Bytes excerpt) {
  Message message;
  message.frame_ = std::move(excerpt);
  message.rare().problem = with_rpc_code(std::move(problem));
  return message;
}

Message Message::too_large(Error problem, std::string_view frame) {
  std::string excerpt(frame.substr(0, kKeptHeadBytes));
  if (frame.size() > kKeptHeadBytes)
    excerpt += frame.substr(std::max(kKeptHeadBytes, frame.size() - kKeptTailBytes));
  Message message = malformed(std::move(problem), Bytes::adopt(std::move(excerpt)));
  const std::string_view excerpt_view = message.frame_.view();
  const TruncatedFrame truncated = read_truncated_frame(excerpt_view.substr(0, kKeptHeadBytes));
  message.method_ = truncated.method;
  message.id_ = truncated.is_message && truncated.id.empty() ? trailing_id(excerpt_view) : truncated.id;
  return message;
}

json::View Message::param(std::string_view key) const {
  if (members_.member_count() > json::MemberIndex::kMaxMembers) return json::View();
  return members_.find(params_, key);
}

Error Message::remote_error() const {
  const json::Members object(json::View(error_), {"code", "message", "data"}, kMaxErrorMembers);
  std::int64_t code = object["code"].as_int().value_or(0);
  if (error_.size() > kMaxErrorBytes) {
    return Error::rpc(code, "the remote peer responded with an error larger than max_error_bytes (" +
                                std::to_string(kMaxErrorBytes) + ")");
  }
  std::string text = object["message"].as_string().value_or("the error has no message");
  return Error::rpc(code, std::move(text), std::string(object["data"].text()));
}

}  // namespace fairlead::rpc
