// check_change(): what the servers of users may contain.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

#include "base/contains.hpp"
#include "base/ip_address.hpp"
#include "base/lower_case.hpp"
#include "base/references.hpp"
#include "fairlead/base/duration.hpp"
#include "http/url.hpp"
#include "registry/codes.hpp"
#include "registry/row_reader.hpp"
#include "registry/rules.hpp"

namespace fairlead::registry {

namespace {

using std::chrono::milliseconds;

Error forbidden(std::string message, std::string pointer) {
  return Error(ErrorKind::authorization, std::move(message)).with([&](ErrorDetail& d) {
    d.failure_code = kForbidden;
    d.pointer = std::move(pointer);
  });
}

struct ClockLimit {
  std::string_view key;
  milliseconds pool::Clocks::*clock;
  std::int64_t minimum;
  std::int64_t maximum;
};

constexpr std::array kUserClocks = {
    ClockLimit{"spawn", &pool::Clocks::spawn, 100, 60'000},
    ClockLimit{"handshake", &pool::Clocks::handshake, 100, 120'000},
    ClockLimit{"queue", &pool::Clocks::queue, 0, 120'000},
    ClockLimit{"idle", &pool::Clocks::idle, 100, 600'000},
    ClockLimit{"absolute", &pool::Clocks::absolute, 100, 3'600'000},
    ClockLimit{"ping", &pool::Clocks::ping, 100, 60'000},
    ClockLimit{"health", &pool::Clocks::health, 5'000, 3'600'000},
    ClockLimit{"idle_stop", &pool::Clocks::idle_stop, 1'000, 3'600'000},
    ClockLimit{"drain", &pool::Clocks::drain, 0, 120'000},
};

Result<void> check_clocks(const pool::Clocks& clocks) {
  for (const ClockLimit& limit : kUserClocks) {
    const std::int64_t value = (clocks.*limit.clock).count();
    if (value >= limit.minimum && value <= limit.maximum) continue;
    return forbidden("`clocks." + std::string(limit.key) + "` of a user's server must be " +
                         format_duration(milliseconds(limit.minimum)) + " to " +
                         format_duration(milliseconds(limit.maximum)),
                     "/config/clocks/" + std::string(limit.key));
  }
  return {};
}

// Users set the address and timeouts; everything else keeps its default.
Result<void> check_keys(const pool::ServerSpec& spec) {
  const pool::ServerSpec plain;
  const auto refuse = [](std::string_view key) {
    return forbidden("only administrators may set `" + std::string(key) + "`", "/config/" + std::string(key));
  };
  if (spec.sharing != plain.sharing) return refuse("sharing");
  if (spec.keep_running != plain.keep_running) return refuse("keep_running");
  if (spec.restart != plain.restart) return refuse("restart");
  if (spec.max_calls > plain.max_calls)
    return forbidden("`max_calls` of a user's server must be at most " + std::to_string(plain.max_calls),
                     "/config/max_calls");
  return check_clocks(spec.clocks);
}

// A reference to the environment or to a file would send a secret of the gateway to the user's address. A
// reference to a secret means one of the user's own (find_secret()).
Result<void> check_text_references(std::string_view text, const std::string& pointer) {
  const Result<std::vector<TextPiece>> pieces = parse_references(text);
  if (!pieces) return invalid_row("the value cannot be used: " + pieces.error().message(), pointer);
  const bool allowed = std::ranges::all_of(*pieces, [](const TextPiece& piece) {
    const auto* const reference = std::get_if<Reference>(&piece);
    return !reference || reference->source == Reference::Source::secret;
  });
  if (allowed) return {};
  return forbidden(
      "only administrators may refer to the gateway's environment and files (${NAME}, ${env:NAME}, "
      "${file:/path}); store the value as a secret, and write ${secret:NAME}",
      pointer);
}

Result<void> check_headers(const std::map<std::string, std::string>& headers) {
  constexpr std::array<std::string_view, 8> kOfTheConnection = {
      "connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"};
  for (const auto& [name, value] : headers) {
    std::string pointer = "/config/headers";
    json::append_to_pointer(pointer, name);
    if (contains(kOfTheConnection, lower_case(name)))
      return forbidden("only administrators may set the header `" + name + "`", pointer);
    if (Result<void> checked = check_text_references(value, pointer); !checked) return checked;
  }
  return {};
}

// Host names are checked when the gateway connects (http::ClientOptions::public_addresses_only).
bool is_private_host(std::string host) {
  if (host.ends_with('.')) host.pop_back();
  if (host == "localhost" || host.ends_with(".localhost")) return true;
  if (host.contains(':')) return !is_public_address(host.substr(0, host.find('%')));
  // The system's resolver also accepts short, octal and hexadecimal forms such as 127.1 and 0x7f000001.
  in_addr address{};
  if (::inet_aton(host.c_str(), &address) == 0) return false;
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address, text.data(), text.size());
  return !is_public_address(std::string(text.data()));
}

Result<void> check_url(const std::string& url, const Configuration& configuration) {
  constexpr std::string_view kPointer = "/config/url";
  if (Result<void> checked = check_text_references(url, std::string(kPointer)); !checked) return checked;
  const Result<std::string> sample =
      expand_references(url, [](const Reference&) { return Result<std::string>("1"); });
  const Result<http::Url> parsed = http::Url::parse(sample.value_or(""));
  if (!parsed) return invalid_row("`url` cannot be used: " + parsed.error().message(), std::string(kPointer));
  if (configuration.boolean("registry.allow_private_addresses") || !is_private_host(parsed->host)) return {};
  return forbidden(
      "`url` of a user's server must have a public address (registry.allow_private_addresses is false)",
      std::string(kPointer));
}

Result<void> check_user_server(const Principal& principal, const Server& server,
                               const Configuration& configuration) {
  const auto* address = std::get_if<pool::Address>(&server.spec.transport);
  if (!address)
    return forbidden("only administrators may create, change and operate stdio servers", "/transport");
  if (server.owner != principal.user) return forbidden("users own the servers that they create", "/owner");
  if (server.visibility != Visibility::user)
    return forbidden("a user's server must have the visibility `user`", "/visibility");
  if (Result<void> checked = check_keys(server.spec); !checked) return checked;
  if (Result<void> checked = check_headers(address->headers); !checked) return checked;
  return check_url(address->url, configuration);
}

}  // namespace

Result<void> check_change(const Principal& principal, const Server* before, const Server& after,
                          const Configuration& configuration) {
  const Decision decision = before ? decide(principal, Operation::update, *before) : Decision{true, true, {}};
  if (!decision) return decision.error("server `" + (before ? before->name : after.name) + "`");
  if (!before) {
    const Decision area = decide(principal, Operation::create, Area::servers);
    if (!area) return area.error("server `" + after.name + "`");
  }
  if (after.visibility == Visibility::user && after.owner.empty())
    return invalid_row("a server of the visibility `user` needs an `owner`", "/owner");
  if (is_administrator(principal)) return {};
  if (after.published.text() != (before ? before->published.text() : std::string_view()))
    return forbidden("only administrators may publish servers", "/published");
  return check_user_server(principal, after, configuration);
}

}  // namespace fairlead::registry
