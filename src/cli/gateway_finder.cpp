#include "cli/gateway_finder.hpp"

#include <cstdlib>

#include "admin/admin_token.hpp"
#include "admin/gateway_file.hpp"
#include "cli/contexts.hpp"
#include "fairlead/http/server.hpp"
#include "http/url.hpp"

namespace fairlead::cli {

std::string environment_value(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

namespace {

constexpr std::string_view kTokenHint =
    "Name the file with the token (--token-file FILE), set FAIRLEAD_TOKEN, or add a context with "
    "`fairlead context add`.";

// Only a gateway on this machine may get the administrator's token of this user. A host is on this machine if
// it is `localhost` or a loopback address, and not if it is a name that only begins like one.
bool is_on_this_machine(const std::string& url) {
  if (url.starts_with("unix:")) return true;
  const Result<http::Url> parsed = http::Url::parse(url);
  if (!parsed) return false;
  const Result<bool> local = http::is_local_address(parsed->host_and_port());
  return local && *local;
}

Result<std::string> local_admin_token() {
  const Result<std::string> state = admin::state_directory();
  if (!state) return state;
  return admin::read_admin_token(*state + "/admin.token");
}

// Sets the token: that of the option, of FAIRLEAD_TOKEN, of the context (already set), of
// FAIRLEAD_ADMIN_TOKEN, or for a gateway on this machine that of the file `admin.token`. Called before a
// database is opened, because that removes FAIRLEAD_ADMIN_TOKEN from the environment.
Result<void> add_token(const GatewayChoice& choice, GatewayAddress& address) {
  address.token_hint = kTokenHint;
  if (!choice.token_file.empty()) {
    Result<std::string> token = admin::read_admin_token(choice.token_file);
    if (!token) return token.error();
    address.token = std::move(*token);
    return {};
  }
  if (const std::string token = environment_value("FAIRLEAD_TOKEN"); !token.empty()) address.token = token;
  if (address.token.empty()) address.token = environment_value("FAIRLEAD_ADMIN_TOKEN");
  if (!address.token.empty() || address.url.empty() || !is_on_this_machine(address.url)) return {};
  const Result<std::string> token = local_admin_token();
  if (token) address.token = *token;
  return {};
}

// Returns whether a token is given that is used instead of that of a context.
bool has_explicit_token(const GatewayChoice& choice) {
  return !choice.token_file.empty() || !environment_value("FAIRLEAD_TOKEN").empty();
}

Result<GatewayTarget> target_of_url(const GatewayChoice& choice, const std::string& url) {
  GatewayTarget target;
  target.address.url = url;
  target.address.ca_file = choice.ca_file;
  const Result<void> found = add_token(choice, target.address);
  if (!found) return found.error();
  return target;
}

Result<GatewayTarget> target_of_database(const GatewayChoice& choice, const std::string& database) {
  GatewayTarget target;
  target.database = database;
  target.address.ca_file = choice.ca_file;
  const Result<void> found = add_token(choice, target.address);
  if (!found) return found.error();
  return target;
}

Result<GatewayTarget> target_of_context(const GatewayChoice& choice, const Contexts& contexts,
                                        const std::string& name) {
  const Result<GatewayContext> context = find_context(contexts, name);
  if (!context) return context.error();
  if (!context->database.empty()) return target_of_database(choice, context->database);
  GatewayTarget target;
  target.address.url = context->gateway;
  target.address.ca_file = choice.ca_file.empty() ? context->ca_file : choice.ca_file;
  Result<std::string> token = has_explicit_token(choice) ? std::string() : context_token(name, *context);
  if (!token) return token.error();
  target.address.token = std::move(*token);
  const Result<void> found = add_token(choice, target.address);
  if (!found) return found.error();
  return target;
}

Result<GatewayTarget> default_target(const GatewayChoice& choice) {
  const std::string database = environment_value("FAIRLEAD_DB");
  if (!database.empty()) return target_of_database(choice, database);
  const Result<std::string> state = admin::state_directory();
  if (!state) return state.error();
  Result<GatewayTarget> target = target_of_database(choice, "sqlite:" + *state + "/fairlead.db");
  if (target) target->is_default_database = true;
  return target;
}

// Returns the name of the context that selects the gateway; empty if something else does.
std::string chosen_context(const GatewayChoice& choice, const Contexts& contexts) {
  if (!choice.url.empty() || !choice.database.empty()) return {};
  if (!choice.context.empty()) return choice.context;
  if (!environment_value("FAIRLEAD_GATEWAY").empty()) return {};
  const std::string name = environment_value("FAIRLEAD_CONTEXT");
  return name.empty() ? contexts.current : name;
}

}  // namespace

Result<GatewayTarget> find_gateway(const GatewayChoice& choice) {
  const int named = !choice.url.empty() + !choice.database.empty() + !choice.context.empty();
  if (named > 1) return Error(ErrorKind::validation, "--gateway, --db and --context exclude each other");
  if (!choice.url.empty()) return target_of_url(choice, choice.url);
  if (!choice.database.empty()) return target_of_database(choice, choice.database);
  const std::string url = environment_value("FAIRLEAD_GATEWAY");
  if (choice.context.empty() && !url.empty()) return target_of_url(choice, url);
  const Result<Contexts> contexts = load_contexts();
  if (!contexts) return contexts.error();
  const std::string name = chosen_context(choice, *contexts);
  return name.empty() ? default_target(choice) : target_of_context(choice, *contexts, name);
}

Result<bool> needs_token_command(const GatewayChoice& choice) {
  if (has_explicit_token(choice)) return false;
  const Result<Contexts> contexts = load_contexts();
  if (!contexts) return contexts.error();
  const auto context = contexts->all.find(chosen_context(choice, *contexts));
  return context != contexts->all.end() && !context->second.token_command.empty();
}

bool is_database_in_use(const Error& error) {
  return admin::is_database_in_use(error);
}

std::optional<GatewayAddress> serving_gateway(const GatewayTarget& target) {
  const std::optional<admin::ServingGateway> serving =
      admin::find_serving_gateway(admin::sqlite_file_of(target.database));
  if (!serving) return std::nullopt;
  GatewayAddress address = target.address;
  address.url = serving->url;
  if (!address.token.empty()) return address;
  const Result<std::string> token = local_admin_token();
  if (token) address.token = *token;
  return address;
}

}  // namespace fairlead::cli
