// Reads HTTP responses from arbitrary bytes: the result does not depend on how the stream is split, a head
// stays within the limit, and a response that both ResponseParser and Beast accept ends at the same byte and
// has the same contents. If two parsers disagree about that, a proxy can be made to mix up responses.
#include "http/response_parser.hpp"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec_checks.hpp"

namespace {

using namespace fairlead;
using http::ResponseParser;
using rpc::checks::PieceSizes;
using rpc::checks::require;

struct Outcome {
  int status = 0;
  std::string body;
  std::string rest;
  bool done = false;
  bool keep_alive = false;
  std::optional<ErrorKind> problem;
  bool operator==(const Outcome&) const = default;
};

// Parses the whole stream. `ends`: the connection ends after it.
Outcome in_pieces_of(std::string_view stream, std::size_t longest, bool ends) {
  ResponseParser parser;
  PieceSizes sizes(stream, longest);
  Outcome outcome;
  for (std::size_t fed = 0; fed < stream.size();) {
    const std::string_view piece = stream.substr(fed, sizes.next());
    fed += piece.size();
    const Result<void> parsed = parser.feed(piece, outcome.body);
    if (!parsed) {
      // How much of the body precedes the error depends on the pieces.
      return Outcome{0, {}, {}, false, false, parsed.error().kind()};
    }
    require(outcome.body.size() <= fed);
  }
  if (ends && !parser.on_end_of_input()) outcome.problem = ErrorKind::closed;
  outcome.done = parser.done();
  if (parser.has_head()) outcome.status = parser.head().status;
  if (!outcome.done) return outcome;
  outcome.keep_alive = parser.keep_alive();
  outcome.rest = parser.extract_rest();
  return outcome;
}

void compare_with_beast(std::string_view stream, const Outcome& ours) {
  namespace beast = boost::beast::http;
  beast::response_parser<beast::string_body> parser;
  parser.header_limit(1u << 20);
  parser.body_limit(1u << 20);
  parser.eager(true);
  boost::beast::error_code problem;
  std::size_t done = 0;
  while (!parser.is_done() && !problem && done < stream.size()) {
    const std::size_t taken =
        parser.put(boost::asio::buffer(stream.data() + done, stream.size() - done), problem);
    done += taken;
    if (problem == beast::error::need_more || taken == 0) break;
  }
  // Beast does not skip interim responses.
  if (problem || !parser.is_done() || parser.get().result_int() / 100 == 1) return;
  require(static_cast<int>(parser.get().result_int()) == ours.status);
  require(parser.get().body() == ours.body);
  require(stream.size() - done == ours.rest.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<char> copy(data, data + size);
  const std::string_view stream(copy.data(), copy.size());
  for (const bool ends : {false, true}) {
    const Outcome whole = in_pieces_of(stream, 1u << 20, ends);
    for (const std::size_t longest : {1u, 2u, 7u, 300u})
      require(in_pieces_of(stream, longest, ends) == whole);
    if (whole.done && !ends) compare_with_beast(stream, whole);
  }
  return 0;
}
