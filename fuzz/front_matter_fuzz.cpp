// Reads the front matter of a skill from arbitrary bytes. The result is a valid JSON object, or an error with
// a message, and is at most a few times as large as the input.
#include "mcp/front_matter.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec_checks.hpp"
#include "fairlead/json/scanner.hpp"

namespace {

using namespace fairlead;
using rpc::checks::require;

void check(std::string_view markdown) {
  const Result<json::Raw> read = mcp::read_front_matter(markdown);
  if (!read) {
    require(read.error().kind() == ErrorKind::validation);
    return require(read.error().message().starts_with("front matter: "));
  }
  require(!json::validate(read->text()) && json::View(*read).is(json::Type::object));
  require(read->text().size() <= 6 * markdown.size() + 16);  // a byte becomes at most \u00XX
  require(mcp::same_value(json::View(*read), json::View(*read)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<char> copy(data, data + size);
  const std::string_view text(copy.data(), copy.size());
  check(text);
  check("---\n" + std::string(text) + "\n---\n");
  return 0;
}
