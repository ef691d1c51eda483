#include "http/response_head.hpp"

#include <array>
#include <charconv>
#include <string_view>

#include "fairlead/json/writer.hpp"
#include "http/syntax.hpp"

namespace fairlead::http {

using namespace std::string_view_literals;  // appending a string_view needs no strlen()

std::string_view reason_phrase(int status) noexcept {
  switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 507: return "Insufficient Storage";
    default: return "Status";
  }
}

std::string_view DateField::now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &time);
  if (time.tv_sec != second_) {
    second_ = time.tv_sec;
    std::tm parts{};
    ::gmtime_r(&second_, &parts);
    std::array<char, 64> text;
    // HTTP requires English names of days and months. They are inserted here, because the names that
    // strftime() writes depend on the locale of the process.
    static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const std::size_t size =
        std::strftime(text.data(), text.size(), "Date: ???, %d ??? %Y %H:%M:%S GMT\r\n", &parts);
    text_.assign(text.data(), size);
    text_.replace(6, 3, kDays[static_cast<std::size_t>(parts.tm_wday)]);
    text_.replace(14, 3, kMonths[static_cast<std::size_t>(parts.tm_mon)]);
  }
  return text_;
}

namespace {

bool is_set_by_server(std::string_view name) noexcept {
  switch (name.size()) {
    case 4: return equals_ignore_case(name, "date");
    case 10: return equals_ignore_case(name, "connection");
    case 14: return equals_ignore_case(name, "content-length");
    case 17: return equals_ignore_case(name, "transfer-encoding");
    default: return false;
  }
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": "sv;
  const std::size_t begin = out.size();
  out += value;
  if (!is_field_value(value)) {
    for (std::size_t i = begin; i < out.size(); ++i) {
      if (!is_field_value(std::string_view(out).substr(i, 1))) out[i] = ' ';
    }
  }
  out += "\r\n"sv;
}

void append_number(std::string& out, std::size_t number) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append_status_line(std::string& out, int status) {
  out += "HTTP/1.1 "sv;
  append_number(out, static_cast<std::size_t>(status));
  out += ' ';
  out += reason_phrase(status);
  out += "\r\n"sv;
}

void append_framing(std::string& out, int status, const ResponseFraming& framing) {
  switch (framing.body) {
    case ResponseFraming::Body::chunked: out += "Transfer-Encoding: chunked\r\n"sv; break;
    case ResponseFraming::Body::sized:
      if (!has_content_length(status)) break;
      out += "Content-Length: "sv;
      append_number(out, framing.content_length);
      out += "\r\n"sv;
      break;
    case ResponseFraming::Body::none:
    case ResponseFraming::Body::until_close: break;
  }
  if (framing.upgrade) {
    out += "Connection: Upgrade\r\n"sv;
  } else if (!framing.keep_alive) {
    out += "Connection: close\r\n"sv;
  } else if (framing.http_1_0) {
    out += "Connection: keep-alive\r\n"sv;
  }
}

}  // namespace

std::string_view PlainHead::up_to_length(int status, std::string_view content_type, std::string_view date) {
  if (status == status_ && content_type == content_type_ && date == date_) return text_;
  status_ = status;
  content_type_ = content_type;
  date_ = date;
  text_.clear();
  append_status_line(text_, status);
  text_ += date;
  text_ += "Content-Type: "sv;
  text_ += content_type;
  text_ += "\r\nContent-Length: "sv;
  return text_;
}

PlainHead::Length::Length(std::size_t body_bytes) noexcept {
  constexpr std::string_view kEndOfHead = "\r\n\r\n";
  end_ = std::to_chars(text_.data(), text_.data() + text_.size() - kEndOfHead.size(), body_bytes).ptr;
  end_ += kEndOfHead.copy(end_, kEndOfHead.size());
}

void append_head(std::string& out, const Response& response, const ResponseFraming& framing,
                 std::string_view date) {
  append_status_line(out, response.status);
  out += date;
  for (const auto& [name, value] : response.headers) {
    if (!is_set_by_server(name) && is_token(name)) append_field(out, name, value);
  }
  if (!framing.origin.empty() && !response.headers.has("Access-Control-Allow-Origin")) {
    append_field(out, "Access-Control-Allow-Origin", framing.origin);
    out +=
        "Access-Control-Expose-Headers: Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, "
        "Retry-After, ETag, Location, Idempotency-Replayed, Request-Id\r\n"
        "Vary: Origin\r\n"sv;
  }
  append_framing(out, response.status, framing);
  out += "\r\n"sv;
}

Response refusal_response(int status, std::string_view message) {
  std::string body = R"({"jsonrpc":"2.0","error":{"code":-32000,"message":)";
  json::append_string(body, message);
  body += "}}";
  return Response::json(status, Bytes::adopt(std::move(body)));
}

std::string surplus_message(const ServerOptions& options) {
  return "too many connections: max_connections (" + std::to_string(options.max_connections) + ") are open";
}

}  // namespace fairlead::http
