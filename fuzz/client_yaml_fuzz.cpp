// Reads files of clients in the format YAML from arbitrary bytes. The first byte selects the client.
#include <cstdint>

#include "client_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead::clients;
  checks::check_for_clients(data, size, FileFormat::yaml, "config.yaml");
  return 0;
}
