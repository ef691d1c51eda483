#include "fairlead/rpc/message.hpp"

#include <algorithm>

#include "fairlead/json/view.hpp"
#include "fairlead/rpc/codes.hpp"
#include "rpc/cut_frame.hpp"

namespace fairlead::rpc {

namespace {

// A larger error object is not decoded: its code is kept, message and data are not.
constexpr std::size_t kMaxErrorBytes = 1u << 20;

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

}  // namespace

// Reads one envelope with a scanner that stands before it. Grammar errors stick in the scanner; what is
// wrong with an envelope is noted and the scan goes on, so that one bad message in a batch spoils only
// itself.
class EnvelopeReader {
 public:
  // `text` is what the scanner reads.
  EnvelopeReader(json::Scanner& scanner, std::string_view text, Message& message)
      : scanner_(scanner), text_(text), message_(message) {}

  void read() {
    if (scanner_.peek() != json::Type::object) {
      std::string_view skipped;
      if (scanner_.value(skipped)) refuse("not an object");
      return;
    }
    read_members();
    if (!scanner_.failed() && !message_.problem_) classify();
  }

 private:
  void read_members() {
    std::string_view key;
    std::string_view value;
    bool escaped = false;
    scanner_.begin_object();
    while (scanner_.next_member(key, escaped)) {
      const Member member = escaped ? member_named(json::unescape(key)) : member_named(key);
      if (!read_value(member, value)) return;
      take(member, value);
    }
  }

  bool read_value(Member member, std::string_view& value) {
    const bool indexed = member == Member::params || member == Member::result;
    if (!indexed || scanner_.peek() != json::Type::object) return scanner_.value(value);
    return message_.members_.scan(scanner_, text_, value);
  }

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
        if (value != "\"2.0\"" && json::View(value).as_string() != "2.0") refuse("jsonrpc is not \"2.0\"");
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

  void take_method(std::string_view value) {
    if (value.front() != '"') return refuse("method is not a string");
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

  void refuse(const char* what) {
    if (!message_.problem_) message_.problem_ = std::make_shared<const Error>(not_a_message(what));
  }

  json::Scanner& scanner_;
  std::string_view text_;
  Message& message_;
  unsigned seen_ = 0;

 public:
  static Message parse(Bytes frame, const Limits& limits);
  // False for a batch over max_batch_messages, whose other elements are not read one by one: millions of them
  // would take too long.
  static bool read_batch(json::Scanner& scanner, Message& batch, const Limits& limits);
  static Message over_limit(Message batch, const Limits& limits);
};

bool EnvelopeReader::read_batch(json::Scanner& scanner, Message& batch, const Limits& limits) {
  auto messages = std::make_shared<std::vector<Message>>();
  std::string problem;
  scanner.begin_array();
  while (scanner.next_element()) {
    if (messages->size() == limits.max_batch_messages) {
      batch.problem_ =
          std::make_shared<const Error>(not_a_message("more messages in a batch than max_batch_messages (" +
                                                      std::to_string(limits.max_batch_messages) + ")"));
      return false;
    }
    Message& message = messages->emplace_back();
    scanner.peek();  // to the element's first byte
    const std::size_t from = scanner.offset();
    EnvelopeReader(scanner, batch.frame_.view(), message).read();
    message.frame_ = batch.frame_.part(batch.frame_.view().substr(from, scanner.offset() - from));
    message.line_break_ = scanner.saw_line_break();
    message.valid_json_ = true;  // where it is not, the whole frame is refused
  }
  if (messages->empty()) problem = "an empty batch";
  if (!problem.empty()) {
    batch.problem_ = std::make_shared<const Error>(not_a_message(problem));
    return true;
  }
  batch.kind_ = Kind::batch;
  batch.batch_ = std::move(messages);
  return true;
}

// What is not JSON is a parse error first.
Message EnvelopeReader::over_limit(Message batch, const Limits& limits) {
  std::optional<Error> wrong = json::validate(batch.frame_.view(), limits.max_depth);
  if (wrong) return Message::malformed(std::move(*wrong), std::move(batch.frame_));
  batch.valid_json_ = true;
  batch.kind_ = Kind::malformed;
  return batch;
}

Message EnvelopeReader::parse(Bytes frame, const Limits& limits) {
  Message message;
  message.frame_ = std::move(frame);
  json::Scanner scanner(message.frame_.view(), limits.max_depth);
  if (scanner.peek() == json::Type::array) {
    if (!read_batch(scanner, message, limits)) return over_limit(std::move(message), limits);
  } else {
    EnvelopeReader(scanner, message.frame_.view(), message).read();
  }
  if (!scanner.finish()) return Message::malformed(scanner.error(), std::move(message.frame_));
  message.valid_json_ = true;
  if (message.problem_) message.kind_ = Kind::malformed;
  message.line_break_ = scanner.saw_line_break();
  return message;
}

Message Message::parse(Bytes frame, const Limits& limits) {
  return EnvelopeReader::parse(std::move(frame), limits);
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

Error Message::remote_error() const {
  const json::View object(error_);
  std::int64_t code = object["code"].as_int().value_or(0);
  if (object.text().size() > kMaxErrorBytes) {
    return Error::rpc(code, "the other side answered with an error of more than max_error_bytes (" +
                                std::to_string(kMaxErrorBytes) + ")");
  }
  std::string text = object["message"].as_string().value_or("the other side gave no message");
  return Error::rpc(code, std::move(text), std::string(object["data"].text()));
}

}  // namespace fairlead::rpc
