#include "fairlead/rpc/message.hpp"

#include <algorithm>

#include "fairlead/json/view.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "json/walk.hpp"
#include "rpc/cut_frame.hpp"
#include "rpc/message_parser.hpp"

namespace fairlead::rpc {

namespace {

// A larger error object is not decoded: its code is kept, message and data are not.
constexpr std::size_t kMaxErrorBytes = 256u << 10;
constexpr std::size_t kMaxErrorMembers = 1000;  // what comes behind them is not read
constexpr std::size_t kMaxMethodBytes = 64u << 10;

enum class Member : std::uint8_t { jsonrpc, id, method, params, result, error, other };

Member member_named(std::string_view key) noexcept {
  switch (key.size()) {
    case 2: return key == "id" ? Member::id : Member::other;
    case 5: return key == "error" ? Member::error : Member::other;
    case 6:
      return key == "method"   ? Member::method
             : key == "params" ? Member::params
             : key == "result" ? Member::result
                               : Member::other;
    case 7: return key == "jsonrpc" ? Member::jsonrpc : Member::other;
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

Error not_a_message(std::string what) {
  return invalid_request("Invalid Request: " + std::move(what));
}

// What a frame is answered with that could not be read. The code is set here, where it is known that it is
// the frame that is wrong: an error of the same kind out of a handler is the handler's own affair.
Error with_code(Error problem) {
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

// Makes a message of the members of an envelope. What is wrong is noted, so that one bad message in a batch
// spoils only itself.
class Envelope {
 public:
  explicit Envelope(Message& message) : message_(message) {}

  static Member member(std::string_view key, bool escaped) {
    if (!escaped) return member_named(key);
    constexpr std::size_t kLongestSpelling = 6 * 7;  // of a name of seven characters, each as \uXXXX
    return key.size() > kLongestSpelling ? Member::other : member_named(json::unescape(key));
  }

  // The index of `params` or `result`.
  json::MemberIndex& index() noexcept { return message_.members_; }

  void take(Member member, std::string_view value) {
    if (member == Member::other) return;
    // Two readers of a repeated key may disagree about its value; a gateway must not be one of them.
    if (seen_ & bit(member)) {
      if (member == Member::id) message_.id_ = {};
      return refuse("a member is repeated");
    }
    seen_ |= bit(member);
    switch (member) {
      case Member::jsonrpc:
        if (!is_version(value)) refuse("jsonrpc is not \"2.0\"");
        break;
      case Member::id:
        if (!is_id(value)) return refuse("id is neither a string nor a number");
        message_.id_ = value;
        break;
      case Member::method: take_method(value); break;
      case Member::params:
        if (!is_structured(value)) return refuse("params is neither an object nor an array");
        message_.params_ = value;
        break;
      case Member::result: message_.result_ = value; break;
      case Member::error:
        if (value.front() != '{') return refuse("error is not an object");
        message_.error_ = value;
        break;
      case Member::other: break;
    }
  }

  void finish() {
    if (!message_.problem_) classify();
  }

  void refuse(const char* what) {
    if (!message_.problem_) message_.problem_ = std::make_shared<const Error>(not_a_message(what));
  }

 private:
  static bool is_version(std::string_view value) {
    constexpr std::size_t kLongestSpelling = 6 * 3 + 2;
    return value == "\"2.0\"" || (value.size() <= kLongestSpelling && json::View(value).as_string() == "2.0");
  }

  void take_method(std::string_view value) {
    if (value.front() != '"') return refuse("method is not a string");
    if (value.size() > kMaxMethodBytes) return refuse("method is over the limit max_method_bytes (65536)");
    message_.method_ = value.substr(1, value.size() - 2);
    if (message_.method_.find('\\') != std::string_view::npos) {
      message_.unescaped_method_ = std::make_shared<const std::string>(json::unescape(message_.method_));
    }
  }

  void classify() {
    const bool has_id = seen_ & bit(Member::id);
    const bool has_result = seen_ & bit(Member::result);
    const bool has_error = seen_ & bit(Member::error);
    if (!(seen_ & bit(Member::jsonrpc))) return refuse("jsonrpc is missing");
    if (seen_ & bit(Member::method)) {
      if (has_result || has_error) return refuse("both a request and a response");
      message_.kind_ = has_id ? Kind::request : Kind::notification;
    } else if (has_result && has_error) {
      refuse("both a result and an error");
    } else if (has_error) {
      message_.kind_ = Kind::error;
    } else if (has_id) {
      message_.kind_ = Kind::response;
      message_.lacks_result_ = !has_result;
      if (!has_result) message_.result_ = "null";
    } else {
      refuse("neither method nor id");
    }
  }

  Message& message_;
  unsigned seen_ = 0;
};

// Reads one envelope with a scanner that stands before it. Grammar errors stick in the scanner.
class EnvelopeReader {
 public:
  // `text` is what the scanner reads.
  EnvelopeReader(json::Scanner& scanner, std::string_view text, Message& message)
      : scanner_(scanner), text_(text), envelope_(message) {}

  // Returns false when the scanner has paused: call it again.
  bool read() {
    if (!begun_ && scanner_.peek() != json::Type::object) {
      std::string_view skipped;
      if (scanner_.value(skipped)) envelope_.refuse("not an object");
      return !scanner_.paused();
    }
    if (!std::exchange(begun_, true)) scanner_.begin_object();
    read_members();
    if (scanner_.paused()) return false;
    if (!scanner_.failed()) envelope_.finish();
    return true;
  }

 private:
  void read_members() {
    std::string_view value;
    while (has_key_ || scanner_.next_member(key_, escaped_)) {
      if (!std::exchange(has_key_, true)) member_ = Envelope::member(key_, escaped_);
      if (!read_value(value)) return;
      has_key_ = false;
      envelope_.take(member_, value);
    }
  }

  bool read_value(std::string_view& value) {
    if (!indexing_) {
      if (!is_indexed(member_) || scanner_.paused() || scanner_.peek() != json::Type::object)
        return scanner_.value(value);
      indexing_.emplace(envelope_.index(), text_);
    }
    if (!indexing_->scan(scanner_, value)) return false;
    indexing_.reset();
    return true;
  }

  json::Scanner& scanner_;
  std::string_view text_;
  Envelope envelope_;
  bool begun_ = false;
  bool has_key_ = false;  // of a member whose value is not scanned yet
  bool escaped_ = false;
  Member member_ = Member::other;
  std::string_view key_;
  std::optional<json::MemberIndex::Indexing> indexing_;  // of params or result, as long as it is scanned
};

// Reads one frame: an envelope, or a batch of them.
class FrameReader {
 public:
  // `message` and `limits` must outlive it.
  FrameReader(Message& message, Bytes frame, const Limits& limits)
      : message_(message), limits_(limits), scanner_(frame.view(), limits.max_depth) {
    message_.frame_ = std::move(frame);
  }

  void pause_with(json::ScanPauses& pauses) {
    pauses_ = &pauses;
    scanner_.pause_with(pauses);
  }

  // Returns false when the scanner has paused: call it again. Otherwise the message is complete.
  bool read() {
    const bool whole = validating_ ? validate() : batch_ ? read_batch() : read_first();
    if (whole) finish();
    return whole;
  }

 private:
  bool read_first() {
    if (!envelope_ && scanner_.peek() == json::Type::array) {
      scanner_.begin_array();
      batch_ = std::make_shared<std::vector<Message>>();
      return read_batch();
    }
    if (!envelope_) envelope_.emplace(scanner_, message_.frame_.view(), message_);
    return envelope_->read();
  }

  bool read_batch() {
    while (envelope_ || scanner_.next_element()) {
      if (!envelope_) {
        if (batch_->size() == limits_.max_batch_messages) return refuse_batch();
        scanner_.peek();  // to the element's first byte
        from_ = scanner_.offset();
        envelope_.emplace(scanner_, message_.frame_.view(), batch_->emplace_back());
      }
      if (!envelope_->read()) return false;
      envelope_.reset();
      finish_element(batch_->back());
    }
    if (batch_->empty()) {
      message_.problem_ = std::make_shared<const Error>(not_a_message("an empty batch"));
    } else {
      message_.kind_ = Kind::batch;
      message_.batch_ = std::move(batch_);
    }
    return true;
  }

  void finish_element(Message& element) {
    element.frame_ = message_.frame_.part(message_.frame_.view().substr(from_, scanner_.offset() - from_));
    element.line_break_ = scanner_.saw_line_break();
    element.valid_json_ = true;  // where it is not, the whole frame is refused
  }

  // The other elements are not read one by one: millions of them would take too long. But what is not JSON is
  // a parse error first.
  bool refuse_batch() {
    message_.problem_ =
        std::make_shared<const Error>(not_a_message("more messages in a batch than max_batch_messages (" +
                                                    std::to_string(limits_.max_batch_messages) + ")"));
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
    if (message_.problem_) message_.kind_ = Kind::malformed;
    message_.line_break_ = scanner_.saw_line_break();
  }

  Message& message_;
  const Limits& limits_;
  json::Scanner scanner_;
  json::ScanPauses* pauses_ = nullptr;
  bool validating_ = false;
  std::optional<EnvelopeReader> envelope_;  // the one that is being read
  std::size_t from_ = 0;                    // where it begins, in a batch
  std::shared_ptr<std::vector<Message>> batch_;
};

Message Message::parse(Bytes frame, const Limits& limits) {
  Message message;
  FrameReader(message, std::move(frame), limits).read();
  return message;
}

Message Message::of_valid(Bytes frame, bool one_line) {
  Message message;
  message.frame_ = std::move(frame);
  message.line_break_ = !one_line;
  message.valid_json_ = true;
  Envelope envelope(message);
  const json::View whole(message.frame_.view());
  if (whole.is(json::Type::object)) {
    json::MemberWalk walk(whole.text());
    while (walk.next_key()) {
      const Member member = Envelope::member(walk.key(), walk.escaped());
      std::string_view value = walk.rest();
      if (is_indexed(member) && value.front() == '{') {
        envelope.index() = json::MemberIndex::of_first(value, value);
        walk.value_ends_at(value.data() + value.size());
      } else {
        walk.value_ends_at(json::skip_trusted(value.data(), value.data() + value.size()));
      }
      envelope.take(member, walk.value());
    }
    envelope.finish();
  } else {
    envelope.refuse("not an object");
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
  message.problem_ = std::make_shared<const Error>(with_code(std::move(problem)));
  return message;
}

Message Message::too_large(Error problem, std::string_view frame) {
  std::string excerpt(frame.substr(0, kCutHead));
  if (frame.size() > kCutHead) excerpt += frame.substr(std::max(kCutHead, frame.size() - kCutTail));
  Message message = malformed(std::move(problem), Bytes::adopt(std::move(excerpt)));
  const std::string_view kept = message.frame_.view();
  const CutFrame cut = read_cut_frame(kept.substr(0, kCutHead));
  message.method_ = cut.method;
  message.id_ = cut.is_message && cut.id.empty() ? id_at_end(kept) : cut.id;
  return message;
}

json::View Message::param(std::string_view key) const {
  if (members_.count() > json::MemberIndex::kMaxMembers) return json::View();
  return members_.find(params_, key);
}

Error Message::remote_error() const {
  const json::Members object(json::View(error_), {"code", "message", "data"}, kMaxErrorMembers);
  std::int64_t code = object["code"].as_int().value_or(0);
  if (error_.size() > kMaxErrorBytes) {
    return Error::rpc(code, "the other side answered with an error of more than max_error_bytes (" +
                                std::to_string(kMaxErrorBytes) + ")");
  }
  std::string text = object["message"].as_string().value_or("the other side gave no message");
  return Error::rpc(code, std::move(text), std::string(object["data"].text()));
}

}  // namespace fairlead::rpc
