// The reader of HTTP requests on any bytes: the same comes out wherever the stream is cut, no more than the
// limits allow is held, and what we and Beast both take for a request ends at the same byte and says the
// same. Where two readers disagree about that, requests can be smuggled.
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
using rpc::checks::Cuts;
using rpc::checks::require;

constexpr std::size_t kHeads = 2000;
constexpr std::size_t kBodies = 3000;

struct Seen {
  std::size_t end = 0;  // of the request, in the stream
  std::string method;
  std::string target;
  std::string body;
  bool operator==(const Seen&) const = default;
};

struct Outcome {
  std::vector<Seen> requests;
  RequestReader::State last = RequestReader::State::idle;
  int status = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome in_pieces_of(std::string_view stream, std::size_t longest) {
  RequestReader reader(kHeads, kBodies);
  Cuts cuts(stream, longest);
  Outcome outcome;
  std::size_t fed = 0;
  std::size_t done = 0;
  while (fed < stream.size() && reader.state() != RequestReader::State::refused) {
    fed = std::min(stream.size(), fed + cuts.next());
    while (done < fed && reader.state() != RequestReader::State::refused) {
      const std::size_t taken = reader.feed(stream.substr(done, fed - done));
      require(taken <= fed - done);
      done += taken;
      require(reader.body_bytes() <= kBodies);
      if (reader.state() != RequestReader::State::complete) {
        require(done == fed || reader.state() == RequestReader::State::refused);
        continue;
      }
      http::Request request;
      reader.take(request);
      outcome.requests.push_back({done, request.method, request.target, std::string(request.body.view())});
    }
  }
  outcome.last = reader.state();
  if (outcome.last == RequestReader::State::refused) outcome.status = reader.refusal().status;
  return outcome;
}

void compare_with_beast(std::string_view stream, const Seen& ours) {
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
  if (problem || !parser.is_done()) return;  // it is more strict about some things, which is fine
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
  std::size_t begin = 0;
  for (const Seen& seen : whole.requests) {
    Seen relative = seen;
    relative.end -= begin;
    compare_with_beast(stream.substr(begin), relative);
    begin = seen.end;
  }
  return 0;
}
