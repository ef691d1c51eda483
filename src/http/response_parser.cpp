#include "http/response_parser.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <optional>
#include <utility>

namespace fairlead::http {

namespace {

namespace beast = boost::beast;
using beast::error_code;
using beast::string_view;

constexpr std::uint32_t kMaxHeadBytes = 64u << 10;

std::string_view std_view(string_view text) {
  return {text.data(), text.size()};
}

class Parser final : public beast::http::basic_parser<false> {
 public:
  explicit Parser(bool no_body) {
    eager(true);
    skip(no_body);
    header_limit(kMaxHeadBytes);
    body_limit(boost::none);  // the reader of the body limits it, because an event stream has no end
  }

  ResponseHead head;
  std::string* body = nullptr;      // where put() appends the data of the body
  bool announced_too_much = false;  // the server announced a size over kMaxAnnouncedBytes

 private:
  void on_request_impl(beast::http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int code, string_view reason, int, error_code&) override {
    head.status = code;
    head.reason = std_view(reason);
  }
  void on_field_impl(beast::http::field, string_view name, string_view value, error_code&) override {
    head.headers.add(std_view(name), std_view(value));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& size, error_code& problem) override {
    check_announced_size(size.value_or(0), problem);
  }
  std::size_t on_body_impl(string_view piece, error_code&) override {
    body->append(piece.data(), piece.size());
    return piece.size();
  }
  void on_chunk_header_impl(std::uint64_t size, string_view, error_code& problem) override {
    check_announced_size(size, problem);
  }
  std::size_t on_chunk_body_impl(std::uint64_t, string_view piece, error_code&) override {
    body->append(piece.data(), piece.size());
    return piece.size();
  }
  void on_finish_impl(error_code&) override {}

  void check_announced_size(std::uint64_t size, error_code& problem) {
    announced_too_much = size > kMaxAnnouncedBytes;
    if (announced_too_much) problem = beast::http::error::body_limit;
  }
};

}  // namespace

struct ResponseParser::Impl {
  explicit Impl(bool without_body) : no_body(without_body), parser(std::in_place, without_body) {}

  bool no_body;
  bool started = false;
  int interim_count = 0;
  std::optional<Parser> parser;
  std::string rest;  // input that is not parsed yet

  bool is_interim() const {
    return parser->is_done() && parser->head.status / 100 == 1 && parser->head.status != 101;
  }

  // Runs the parser once on `bytes`. Returns the number of bytes consumed; nullopt if the parser needs more
  // input.
  Result<std::optional<std::size_t>> step(std::string_view bytes, std::string& body) {
    parser->body = &body;
    error_code problem;
    const std::size_t consumed = parser->put(boost::asio::const_buffer(bytes.data(), bytes.size()), problem);
    if (problem == beast::http::error::header_limit)
      return Error(ErrorKind::frame_too_large, "the head of the response is over 64 KiB");
    if (parser->announced_too_much)
      return Error(ErrorKind::frame_too_large,
                   "the response announces a body or a chunk of more than max_announced_bytes (" +
                       std::to_string(kMaxAnnouncedBytes) + ")");
    if (problem == beast::http::error::need_more && consumed == 0) return std::optional<std::size_t>();
    if (problem && problem != beast::http::error::need_more)
      return Error(ErrorKind::parse, "the response is not HTTP: " + problem.message());
    return std::optional<std::size_t>(consumed);
  }
};

ResponseParser::ResponseParser(bool no_body) : impl_(std::make_unique<Impl>(no_body)) {}
ResponseParser::~ResponseParser() = default;

Result<void> ResponseParser::feed(std::string_view bytes, std::string& body) {
  if (!bytes.empty()) impl_->started = true;
  std::string kept = std::exchange(impl_->rest, std::string());
  if (!kept.empty()) {
    kept += bytes;
    bytes = kept;
  }
  while (!bytes.empty() && !done()) {
    const Result<std::optional<std::size_t>> consumed = impl_->step(bytes, body);
    if (!consumed) return consumed.error();
    if (!*consumed) break;
    bytes.remove_prefix(**consumed);
    if (!impl_->is_interim()) continue;
    if (++impl_->interim_count > kMaxInterimResponses)
      return Error(ErrorKind::parse, "more than max_interim_responses (" +
                                         std::to_string(kMaxInterimResponses) +
                                         ") interim (1xx) responses arrived before the final response");
    impl_->parser.emplace(impl_->no_body);
  }
  impl_->rest = bytes;
  return {};
}

Result<void> ResponseParser::on_end_of_input() {
  if (done()) return {};
  error_code problem;
  if (has_head() && impl_->parser->need_eof()) {
    impl_->parser->put_eof(problem);
    if (!problem) return {};
  }
  return Error(ErrorKind::closed, has_head() ? "the connection ended before the end of the response"
                                             : "the connection ended before the response");
}

bool ResponseParser::started() const noexcept {
  return impl_->started;
}
bool ResponseParser::has_head() const noexcept {
  return impl_->parser->is_header_done();
}
const ResponseHead& ResponseParser::head() const noexcept {
  return impl_->parser->head;
}
ResponseHead ResponseParser::extract_head() {
  return std::move(impl_->parser->head);
}
bool ResponseParser::done() const noexcept {
  return impl_->parser->is_done();
}
bool ResponseParser::keep_alive() const noexcept {
  return impl_->parser->keep_alive() && impl_->rest.empty();
}
std::string ResponseParser::extract_rest() {
  return std::exchange(impl_->rest, std::string());
}

}  // namespace fairlead::http
