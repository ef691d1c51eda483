// Reads HTTP requests from arbitrary bytes: the result depends neither on how the stream is split nor on
// whether repeated heads are parsed again, buffered bytes stay within the limits, and a request that both
// RequestReader and Beast accept ends at the same byte and has the same contents. If two readers disagree
// about that, request smuggling is possible.
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "codec_checks.hpp"
#include "http/request_reader.hpp"

namespace {

using namespace fairlead;
using http::RequestReader;
using rpc::checks::PieceSizes;
using rpc::checks::require;

constexpr std::size_t kMaxHeadBytes = 6000;  // more than what a reader keeps for the next request
constexpr std::size_t kMaxBodyBytes = 3000;

struct ParsedRequest {
  std::size_t end = 0;  // the end of the request in the stream
  std::string method;
  std::string target;
  std::string body;
  std::string content_length;
  bool operator==(const ParsedRequest&) const = default;
};

struct Outcome {
  std::vector<ParsedRequest> requests;
  RequestReader::State last = RequestReader::State::idle;
  int status = 0;
  bool operator==(const Outcome&) const = default;
};

// With `reuse_heads`, a head that repeats the previous one is not parsed again.
Outcome in_pieces_of(std::string_view stream, std::size_t longest, bool reuse_heads = false) {
  RequestReader reader(kMaxHeadBytes, kMaxBodyBytes);
  PieceSizes sizes(stream, longest);
  Outcome outcome;
  std::size_t fed = 0;
  std::size_t done = 0;
  while (fed < stream.size() && reader.state() != RequestReader::State::refused) {
    fed = std::min(stream.size(), fed + sizes.next());
    while (done < fed && reader.state() != RequestReader::State::refused) {
      std::size_t taken = reader.feed_until_body(stream.substr(done, fed - done));
      if (reader.expects_continue()) reader.on_continue_sent();
      taken += reader.feed(stream.substr(done + taken, fed - done - taken));
      require(taken <= fed - done);
      done += taken;
      require(reader.received_body_bytes() <= kMaxBodyBytes);
      if (reader.state() != RequestReader::State::complete) {
        require(done == fed || reader.state() == RequestReader::State::refused);
        continue;
      }
      std::unique_ptr<http::Request> request = reader.extract_request();
      outcome.requests.push_back({done, request->method, request->target, std::string(request->body.view()),
                                  std::string(request->headers.get("Content-Length"))});
      if (reuse_heads) reader.reclaim_head(std::move(request), reader.head_number());
    }
  }
  outcome.last = reader.state();
  if (outcome.last == RequestReader::State::refused) outcome.status = reader.refusal().status;
  return outcome;
}

void compare_with_beast(std::string_view stream, const ParsedRequest& ours) {
  namespace beast = boost::beast::http;
  beast::request_parser<beast::string_body> parser;
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
  if (problem || !parser.is_done()) return;  // Beast is stricter in some cases, which is fine
  require(done == ours.end);
  require(std::string_view(parser.get().method_string()) == ours.method);
  require(parser.get().body() == ours.body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<char> copy(data, data + size);
  const std::string_view stream(copy.data(), copy.size());
  const Outcome whole = in_pieces_of(stream, 1u << 20);
  for (const std::size_t longest : {1u, 2u, 7u, 300u}) require(in_pieces_of(stream, longest) == whole);
  for (const std::size_t longest : {300u, 1u << 20}) require(in_pieces_of(stream, longest, true) == whole);
  std::size_t begin = 0;
  for (const ParsedRequest& request : whole.requests) {
    ParsedRequest relative = request;
    relative.end -= begin;
    compare_with_beast(stream.substr(begin), relative);
    begin = request.end;
  }
  return 0;
}
