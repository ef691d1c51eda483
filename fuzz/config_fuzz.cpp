// Loads the configuration of the gateway from arbitrary bytes, JSON or TOML. The result is a configuration,
// or an error with a message.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec_checks.hpp"
#include "fairlead/gateway/config.hpp"

namespace {

using namespace fairlead;
using rpc::checks::require;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<char> copy(data, data + size);
  const Result<gateway::Config> read =
      gateway::parse_config(std::string_view(copy.data(), copy.size()), "the file");
  if (read) return 0;
  require(read.error().kind() == ErrorKind::validation || read.error().kind() == ErrorKind::parse);
  require(!read.error().message().empty());
  return 0;
}
