#include "http/client_response.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <optional>
#include <utility>

namespace fairlead::http {

namespace {

namespace beast = boost::beast;
using beast::error_code;
using beast::string_view;

constexpr std::uint32_t kMostHeadBytes = 64u << 10;

std::string_view std_view(string_view text) {
  return {text.data(), text.size()};
}

class Parser final : public beast::http::basic_parser<false> {
 public:
  explicit Parser(bool no_body) {
    eager(true);
    skip(no_body);
    header_limit(kMostHeadBytes);
    body_limit(boost::none);  // bounded by whoever reads: a stream of events has no end
  }

  ResponseHead head;
  std::string* body = nullptr;  // where the body goes during put()
  bool body_too_large = false;  // the body, or a chunk of it, has more than kMaxAnnouncedBytes

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
    check_size(size.value_or(0), problem);
  }
  std::size_t on_body_impl(string_view piece, error_code&) override {
    body->append(piece.data(), piece.size());
    return piece.size();
  }
  void on_chunk_header_impl(std::uint64_t size, string_view, error_code& problem) override {
    check_size(size, problem);
  }
  std::size_t on_chunk_body_impl(std::uint64_t, string_view piece, error_code&) override {
    body->append(piece.data(), piece.size());
    return piece.size();
  }
  void on_finish_impl(error_code&) override {}

  void check_size(std::uint64_t size, error_code& problem) {
    body_too_large = size > kMaxAnnouncedBytes;
    if (body_too_large) problem = beast::http::error::body_limit;
  }
};

}  // namespace

struct ResponseParser::Impl {
  explicit Impl(bool without_body) : no_body(without_body), parser(std::in_place, without_body) {}

  bool no_body;
  bool started = false;
  int interim = 0;
  std::optional<Parser> parser;
  std::string rest;  // what the parser has not taken yet

  bool is_interim() const {
    return parser->is_done() && parser->head.status / 100 == 1 && parser->head.status != 101;
  }

  // One step of the parser on `bytes`; returns how much it took. nullopt when it needs more.
  Result<std::optional<std::size_t>> step(std::string_view bytes, std::string& body) {
    parser->body = &body;
    error_code problem;
    const std::size_t taken = parser->put(boost::asio::const_buffer(bytes.data(), bytes.size()), problem);
    if (problem == beast::http::error::header_limit)
      return Error(ErrorKind::frame_too_large, "the head of the answer is over 64 KiB");
    if (parser->body_too_large)
      return Error(ErrorKind::frame_too_large,
                   "the answer announces a body or a chunk of more than max_announced_bytes (" +
                       std::to_string(kMaxAnnouncedBytes) + ")");
    if (problem == beast::http::error::need_more && taken == 0) return std::optional<std::size_t>();
    if (problem && problem != beast::http::error::need_more)
      return Error(ErrorKind::parse, "the answer is not HTTP: " + problem.message());
    return std::optional<std::size_t>(taken);
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
    const Result<std::optional<std::size_t>> taken = impl_->step(bytes, body);
    if (!taken) return taken.error();
    if (!*taken) break;
    bytes.remove_prefix(**taken);
    if (!impl_->is_interim()) continue;
    if (++impl_->interim > kMaxInterimResponses)
      return Error(ErrorKind::parse, "more than max_interim_responses (" +
                                         std::to_string(kMaxInterimResponses) +
                                         ") interim (1xx) answers came before the response");
    impl_->parser.emplace(impl_->no_body);
  }
  impl_->rest = bytes;
  return {};
}

Result<void> ResponseParser::at_end() {
  if (done()) return {};
  error_code problem;
  if (has_head() && impl_->parser->need_eof()) {
    impl_->parser->put_eof(problem);
    if (!problem) return {};
  }
  return Error(ErrorKind::closed, has_head() ? "the connection ended in the middle of the answer"
                                             : "the connection ended before the answer");
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
ResponseHead ResponseParser::take_head() {
  return std::move(impl_->parser->head);
}
bool ResponseParser::done() const noexcept {
  return impl_->parser->is_done();
}
bool ResponseParser::keep_alive() const noexcept {
  return impl_->parser->keep_alive() && impl_->rest.empty();
}
std::string ResponseParser::take_rest() {
  return std::exchange(impl_->rest, std::string());
}

}  // namespace fairlead::http
