// Runs every parser of URIs on arbitrary text: no crash, the parts lie within the text, and a parsed URI
// round-trips. The first line of the input is the text, the second a reference or template.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/uri.hpp"
#include "codec_checks.hpp"
#include "fairlead/connection/uri.hpp"
#include "http/url.hpp"
#include "mcp/uri_template.hpp"

namespace {

using namespace fairlead;
using rpc::checks::require;

void check_parts(std::string_view text) {
  const UriParts parts = split_uri(text);
  std::string joined;
  for (const std::string_view part : {parts.scheme, parts.authority, parts.path, parts.query, parts.fragment})
    joined += part;
  require(joined == text);
  if (const auto decoded = percent_decode_strict(text)) require(*decoded == percent_decode_lenient(text));
  if (const Result<HostAndPort> found = split_host_and_port(text); found && found->port) {
    const std::string again = join_host_and_port(found->host, *found->port);
    const Result<HostAndPort> read = split_host_and_port(again);
    require(read.has_value() && read->host == found->host && read->port == found->port);
  }
}

void check_url(std::string_view text, std::string_view reference) {
  const Result<http::Url> url = http::Url::parse(text);
  if (!url) return;
  const Result<http::Url> again = http::Url::parse(url->text());
  require(again.has_value() && again->same_origin(*url) && again->target == url->target);
  require(url->target.find_first_of(" \r\n") == std::string::npos);
  require(url->host_header().find_first_of(" \r\n") == std::string::npos);
  if (const Result<http::Url> resolved = url->resolve(reference))
    require(http::Url::parse(resolved->text()).has_value());
}

void check_address(std::string_view text) {
  const Result<Uri> uri = Uri::parse(text);
  if (!uri) return;
  const Result<Uri> again = Uri::parse(uri->text);
  require(again.has_value() && again->scheme == uri->scheme && again->argv == uri->argv &&
          again->host == uri->host && again->port == uri->port && again->path == uri->path);
}

void check_template(std::string_view uri, std::string_view text) {
  const Result<mcp::UriTemplate> parsed = mcp::UriTemplate::parse(text);
  if (!parsed) return;
  mcp::MatchBudget budget(1'000'000);
  const bool fits = parsed->matches(uri, budget);
  mcp::MatchBudget again(1'000'000);
  if (const auto variables = parsed->extract_variables(uri, again)) {
    require(fits || budget.exhausted());
    require(variables->size() <= parsed->variable_names().size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<char> copy(data, data + size);
  const std::string_view all(copy.data(), copy.size());
  const std::string_view text = all.substr(0, all.find('\n'));
  const std::string_view other = text.size() < all.size() ? all.substr(text.size() + 1) : std::string_view();
  check_parts(text);
  check_url(text, other);
  check_address(text);
  check_template(text, other);
  static_cast<void>(resolve_uri(text, other));
  return 0;
}
