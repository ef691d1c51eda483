// Reads a server.json, or the manifest of a bundle, from arbitrary bytes; the first byte selects which. A row
// that comes out of it must be valid for the registry, also after its inputs were filled.
#include <cstdint>
#include <string>
#include <string_view>

#include "clients/fill_inputs.hpp"
#include "codec_checks.hpp"
#include "packages/bundle_manifest.hpp"
#include "packages/server_document.hpp"
#include "registry/json.hpp"

namespace {

using namespace fairlead;
using rpc::checks::require;

void check_row(const json::Raw& row) {
  require(!json::validate(row.text()));
  const json::View config = json::View(row)["config"];
  require(config.is(json::Type::object));
}

void check_imported(const clients::ImportedServer& server) {
  check_row(server.row);
  clients::InputValues values;
  for (const clients::ImportInput& input : server.inputs) {
    require(!input.name.empty());
    const std::string value =
        input.choices.empty() ? (input.format == "boolean" ? "true" : "1") : input.choices.front();
    values[input.name] = {value};
    if (input.multiple) values[input.name].push_back(value);
  }
  const Result<json::Raw> filled = clients::fill_inputs(server, values);
  if (filled) check_row(*filled);
  const Result<json::Raw> defaults = clients::fill_inputs(server);
  if (defaults) check_row(*defaults);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    const Result<packages::ServerDocument> document = packages::read_server_document(text);
    if (!document) return require(!document.error().message().empty()), 0;
    for (const packages::Candidate& candidate : document->candidates) check_imported(candidate.server);
    return 0;
  }
  const Result<packages::BundleManifest> manifest = packages::read_manifest(text);
  if (!manifest) return require(!manifest.error().message().empty()), 0;
  const Result<clients::ImportedServer> server =
      packages::server_of(*manifest, {"/b/x", "/users/x"}, json::Raw());
  if (server) check_imported(*server);
  return 0;
}
