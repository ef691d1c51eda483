#include "cli/named_target.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/printable.hpp"
#include "base/suggestion.hpp"
#include "cli/address_hint.hpp"
#include "cli/gateway_finder.hpp"
#include "fairlead/gateway/config.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/process/failure.hpp"
#include "pool/reference_resolver.hpp"
#include "pool/server_name.hpp"

namespace fairlead::cli {

namespace {

constexpr std::string_view kEndpointPrefix = "e/";  // e/NAME is an endpoint of the gateway

std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  const std::string_view closest = closest_word(name, known);
  if (!closest.empty()) return " (did you mean `" + printable_line(closest) + "`?)";
  std::string all;
  for (const std::string& other : known) all += (all.empty() ? "" : ", ") + printable_line(other);
  return known.empty() ? " (it has no server)" : " (it has " + shortened(all, 300) + ")";
}

Error unknown_server(const std::string& where, const std::string& name,
                     const std::vector<std::string>& known) {
  return Error(ErrorKind::validation, "`" + printable_line(name) + "` is not an address, and " + where +
                                          " has no server of this name" + suggestion(name, known))
      .with([&](ErrorDetail& detail) { detail.remedy = address_hint({name}); });
}

ProcessSpec to_process(pool::Program program, std::vector<std::string> secrets, const std::string& name) {
  ProcessSpec process;
  process.name = name;
  process.command = std::move(program.command);
  process.args = std::move(program.args);
  process.env = std::move(program.env);
  process.inherit_only = std::move(program.inherit_env);
  process.cwd = std::move(program.cwd);
  process.containment = std::move(program.containment);
  process.secrets = std::move(secrets);
  return process;
}

Result<ServerAddress> to_address(pool::ResolvedTransport resolved, const std::string& name) {
  ServerAddress address;
  if (auto* const program = std::get_if<pool::Program>(&resolved.transport)) {
    address.process = to_process(std::move(*program), std::move(resolved.secrets), name);
  } else if (auto* const remote = std::get_if<pool::Address>(&resolved.transport)) {
    address.url = std::move(remote->url);
    address.headers.assign(remote->headers.begin(), remote->headers.end());
    address.secrets = std::move(resolved.secrets);
  } else {
    return Error(ErrorKind::validation, "server " + name + " has neither a `command` nor a `url`");
  }
  return address;
}

Task<Result<ServerAddress>> find_in_file(const std::string& path, std::string name) {
  const Result<gateway::Config> config = gateway::load_config(path, true);
  if (!config) co_return config.error();
  std::vector<std::string> names;
  for (const pool::ServerSpec& spec : config->servers) names.push_back(spec.name);
  const auto found = std::ranges::find(config->servers, name, &pool::ServerSpec::name);
  if (found == config->servers.end()) co_return unknown_server(path, name, names);
  Result<pool::ResolvedTransport> resolved = co_await pool::resolve_references(*found, nullptr);
  if (!resolved) co_return resolved.error();
  co_return to_address(std::move(*resolved), name);
}

Error no_gateway(const std::string& name) {
  return Error(ErrorKind::validation,
               "`" + printable_line(name) +
                   "` is not an address, and no gateway runs that could have a server of this name")
      .with([&](ErrorDetail& detail) {
        detail.remedy =
            "Start one with `fairlead serve`, name one with --gateway URL, or name a file with --config "
            "FILE. " +
            address_hint({name});
      });
}

Result<GatewayAddress> running_gateway(const GatewayChoice& choice, const std::string& name) {
  Result<GatewayTarget> target = find_gateway(choice);
  if (!target) return target.error();
  if (target->database.empty()) return std::move(target->address);
  std::optional<GatewayAddress> address = serving_gateway(*target);
  if (address) return std::move(*address);
  return no_gateway(name);
}

std::string mcp_url(const GatewayAddress& gateway, const std::string& name) {
  std::string base = gateway.url.starts_with("unix:") ? "http://localhost" : gateway.url;
  while (base.ends_with('/')) base.pop_back();
  if (base.ends_with("/mcp")) base.resize(base.size() - 4);
  return base + "/mcp/" + name;
}

bool says_unknown(const Error& error) {
  const ErrorDetail& detail = error.detail();
  return detail.http_status == 404 || detail.failure_code == failure::unknown_endpoint ||
         json::View(detail.rpc_data)["code"].as_string() == failure::unknown_endpoint;
}

}  // namespace

void ServerChoice::add_to(CLI::App& command) {
  command.add_option("--config", config,
                     "TARGET is the name of a server in this file: TOML, or the JSON of a desktop client");
  command.add_option("--gateway", gateway.url,
                     "TARGET is the name of a server of this gateway, such as http://127.0.0.1:8808");
  command.add_option("--context", gateway.context, "The same for a gateway of `fairlead context list`");
  command.add_option("--db", gateway.database, "The same for the gateway that serves this database");
  command.add_option("--token-file", gateway.token_file,
                     "File with the token for the gateway, or for a TARGET with a URL");
}

void ServerAddress::apply_to(transport::ConnectOptions& options) const {
  for (const auto& [name, value] : headers) options.headers.add(name, value);
  options.secrets.insert(options.secrets.end(), secrets.begin(), secrets.end());
  if (!unix_socket.empty()) options.unix_socket = unix_socket;
  if (options.ca_file.empty()) options.ca_file = ca_file;
}

bool is_server_name(const std::string& target) {
  const std::string_view name(target);
  return !pool::server_name_problem(name.starts_with(kEndpointPrefix) ? name.substr(kEndpointPrefix.size())
                                                                      : name);
}

Task<Result<ServerAddress>> find_server(const ServerChoice& choice, std::string name) {
  if (!choice.config.empty()) {
    Result<ServerAddress> found = co_await find_in_file(choice.config, std::move(name));
    co_return found;
  }
  const Result<GatewayAddress> gateway = running_gateway(choice.gateway, name);
  if (!gateway) co_return gateway.error();
  ServerAddress address;
  address.url = mcp_url(*gateway, name);
  if (gateway->url.starts_with("unix:")) address.unix_socket = gateway->url.substr(5);
  address.ca_file = gateway->ca_file;
  if (!gateway->token.empty()) {
    address.headers.emplace_back("Authorization", "Bearer " + gateway->token);
    address.secrets.push_back(gateway->token);
  }
  co_return address;
}

Task<Error> with_similar_server(Loop& loop, const ServerChoice& choice, std::string name, Error error) {
  if (!choice.config.empty() || !says_unknown(error)) co_return error;
  const Result<GatewayAddress> gateway = running_gateway(choice.gateway, name);
  if (!gateway) co_return error;
  const Result<AdminClientPtr> client = AdminClient::create(loop, *gateway);
  if (!client) co_return error;
  const Result<std::vector<json::Raw>> rows = co_await (*client)->list("/mcp/servers");
  if (!rows) co_return error;
  std::vector<std::string> names;
  for (const json::Raw& row : *rows) names.push_back(json::View(row)["name"].as_string().value_or(""));
  co_return unknown_server("the gateway " + gateway->url, name, names);
}

}  // namespace fairlead::cli
