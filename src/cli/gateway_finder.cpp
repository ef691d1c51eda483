#include "cli/gateway_finder.hpp"

#include <cstdlib>

#include "admin/admin_token.hpp"
#include "http/url.hpp"

namespace fairlead::cli {

namespace {

std::string environment_value(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// Only a gateway on this machine may get the administrator's token of this user.
bool is_on_this_machine(const std::string& url) {
  if (url.starts_with("unix:")) return true;
  const Result<http::Url> parsed = http::Url::parse(url);
  return parsed && (parsed->host == "localhost" || parsed->host == "::1" || parsed->host.starts_with("127."));
}

// Sets the token of `address`: that of the option, of the environment, or for a gateway on this machine that
// of the file `admin.token`.
Result<void> find_token(const GatewayChoice& choice, GatewayAddress& address) {
  if (!choice.token_file.empty()) {
    Result<std::string> token = admin::read_admin_token(choice.token_file);
    if (!token) return token.error();
    address.token = std::move(*token);
    return {};
  }
  for (const char* const name : {"FAIRLEAD_TOKEN", "FAIRLEAD_ADMIN_TOKEN"}) {
    if (address.token.empty()) address.token = environment_value(name);
  }
  address.token_hint = "Set FAIRLEAD_TOKEN, or name a file with the token: --token-file FILE.";
  if (!address.token.empty() || !is_on_this_machine(address.url)) return {};
  const Result<std::string> state = admin::state_directory();
  if (!state) return {};
  Result<std::string> token = admin::read_admin_token(*state + "/admin.token");
  if (token) address.token = std::move(*token);
  return {};
}

}  // namespace

Result<GatewayAddress> find_gateway(const GatewayChoice& choice) {
  GatewayAddress address;
  address.url = choice.url.empty() ? environment_value("FAIRLEAD_GATEWAY") : choice.url;
  if (address.url.empty()) return Error(ErrorKind::validation, "no gateway is named: pass --gateway URL");
  address.ca_file = choice.ca_file;
  const Result<void> found = find_token(choice, address);
  if (!found) return found.error();
  return address;
}

}  // namespace fairlead::cli
