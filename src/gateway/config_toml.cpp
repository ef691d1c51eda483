// Writes a ServerSpec as TOML. The members of its JSON become keys; nested objects become inline tables.
#include "fairlead/gateway/config.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/pool/server_spec_json.hpp"
#include "json/toml.hpp"

namespace fairlead::gateway {

std::string to_toml(const pool::ServerSpec& spec) {
  std::string out = "[servers.";
  json::append_toml_key(out, spec.name);
  out += "]\n";
  const json::Raw json = pool::to_json(spec);
  json::View(json).each_member([&](std::string_view key, bool escaped, json::View value) {
    json::append_toml_member(out, escaped ? json::unescape(key) : std::string(key), value);
    out += '\n';
    return true;
  });
  return out;
}

}  // namespace fairlead::gateway
