// The definitions of the configuration.
#include <algorithm>
#include <array>

#include "fairlead/base/byte_budget.hpp"
#include "fairlead/base/duration.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/pool/pool.hpp"
#include "registry/configuration.hpp"

namespace fairlead::registry {

namespace {

constexpr std::string_view kSystem = "system";
constexpr std::int64_t kMaxBytes = static_cast<std::int64_t>(Limits::kMaxFrameCeiling);
constexpr std::int64_t kMaxBufferBytes = std::int64_t{1} << 40;
constexpr std::int64_t kHour = 3'600'000;

Definition integer(std::string_view full_key, std::uint64_t value, std::int64_t minimum, std::int64_t maximum,
                   Applies applies, std::string_view description) {
  return {full_key, ValueType::integer, std::to_string(value), kSystem, minimum, maximum, {}, description,
          applies};
}

Definition duration(std::string_view full_key, std::chrono::milliseconds value, std::int64_t minimum,
                    std::int64_t maximum, std::string_view description) {
  std::string json = "\"" + format_duration(value) + "\"";
  return {full_key, ValueType::duration, std::move(json), kSystem, minimum, maximum,
          {},       description,         Applies::at_once};
}

Definition choice(std::string_view full_key, std::string_view value, std::vector<std::string_view> choices,
                  std::string_view description) {
  std::string json = "\"" + std::string(value) + "\"";
  return {full_key, ValueType::choice,  std::move(json), kSystem,         0,
          0,        std::move(choices), description,     Applies::at_once};
}

Definition boolean(std::string_view full_key, bool value, std::string_view description) {
  return {full_key, ValueType::boolean, value ? "true" : "false", kSystem, 0, 0,
          {},       description,        Applies::at_once};
}

void add_pool_limits(std::vector<Definition>& all) {
  const pool::PoolLimits limits;
  all.push_back(integer("mcp.max_stdio_processes", limits.max_stdio_processes, 1, 10'000, Applies::at_once,
                        "Child processes, including those that are starting or stopping."));
  all.push_back(integer("mcp.max_start_queue", limits.max_start_queue, 0, 1'000'000, Applies::at_once,
                        "Starts that wait for a permit of mcp.max_stdio_processes."));
  all.push_back(integer("mcp.max_concurrent_starts", 0, 0, 10'000, Applies::at_once,
                        "Programs that are being started at the same time; 0: twice the cores, at least 4."));
  all.push_back(integer("mcp.max_calls", limits.max_calls, 1, 10'000'000, Applies::at_once,
                        "Active calls at all servers."));
  all.push_back(integer("mcp.max_waiting_calls", limits.max_waiting_calls, 0, 10'000'000, Applies::at_once,
                        "Calls that wait for a start or for a permit of mcp.max_calls."));
  all.push_back(integer("mcp.max_client_waiting_calls", limits.max_client_waiting_calls, 0, 10'000'000,
                        Applies::at_once, "Waiting calls of one client."));
  all.push_back(
      duration("mcp.evict_after", limits.evict_after, 0, kHour,
               "A server that has been idle for this long can be stopped when another server needs a "
               "process."));
}

struct ClockDefinition {
  std::string_view full_key;
  std::chrono::milliseconds pool::Clocks::*clock;
  std::int64_t minimum;
  std::string_view description;
};

constexpr std::array kClockDefinitions = {
    ClockDefinition{
        "mcp.clocks.spawn", &pool::Clocks::spawn, 1,
        "Default of the servers' clock `spawn`: until the program is loaded or the socket is connected."},
    ClockDefinition{"mcp.clocks.handshake", &pool::Clocks::handshake, 1,
                    "Default of the servers' clock `handshake`: the MCP handshake."},
    ClockDefinition{
        "mcp.clocks.queue", &pool::Clocks::queue, 0,
        "Default of the servers' clock `queue`: waiting for a permit or for the end of a backoff."},
    ClockDefinition{"mcp.clocks.idle", &pool::Clocks::idle, 1,
                    "Default of the servers' clock `idle`: a call without a response or progress."},
    ClockDefinition{"mcp.clocks.absolute", &pool::Clocks::absolute, 1,
                    "Default of the servers' clock `absolute`: a call, regardless of progress."},
    ClockDefinition{"mcp.clocks.ping", &pool::Clocks::ping, 1,
                    "Default of the servers' clock `ping`: the response to a ping."},
    ClockDefinition{"mcp.clocks.health", &pool::Clocks::health, 0,
                    "Default of the servers' clock `health`: silence until a server is pinged; 0: never."},
    ClockDefinition{
        "mcp.clocks.idle_stop", &pool::Clocks::idle_stop, 0,
        "Default of the servers' clock `idle_stop`: the time without a call until a server is stopped; "
        "0: never."},
    ClockDefinition{
        "mcp.clocks.drain", &pool::Clocks::drain, 0,
        "Default of the servers' clock `drain`: active calls of a server that is removed or changed."},
};

void add_clocks(std::vector<Definition>& all) {
  const pool::Clocks clocks;
  for (const ClockDefinition& definition : kClockDefinitions)
    all.push_back(duration(definition.full_key, clocks.*definition.clock, definition.minimum, 24 * kHour,
                           definition.description));
}

void add_message_limits(std::vector<Definition>& all) {
  const Limits limits;
  const ByteBudgetLimits buffers;
  all.push_back(integer("mcp.max_frame_bytes", limits.max_frame_bytes, 1'024, kMaxBytes, Applies::at_restart,
                        "Size of a message from a client or a server."));
  all.push_back(integer("mcp.max_body_bytes", 4U << 20, 1'024, kMaxBytes, Applies::at_restart,
                        "Size of the body of a client's HTTP request."));
  all.push_back(
      integer("mcp.max_client_buffer_bytes", buffers.max_client_buffer_bytes, 65'536, kMaxBufferBytes,
              Applies::at_restart,
              "Requests, waiting calls and unread responses of one principal or address, in bytes."));
  all.push_back(integer("mcp.max_buffer_bytes", buffers.max_buffer_bytes, 65'536, kMaxBufferBytes,
                        Applies::at_restart,
                        "Requests, waiting calls and unread responses of all clients together, in bytes."));
  all.push_back(integer("mcp.max_noise_frames", limits.max_noise_frames, 0, 1'000'000'000,
                        Applies::at_restart,
                        "Consecutive malformed frames before the connection of a server is closed; 0: no "
                        "limit."));
}

void add_lists(std::vector<Definition>& all) {
  using std::chrono::milliseconds;
  all.push_back(duration("mcp.list_wait", milliseconds(10'000), 0, kHour,
                         "How long a list request waits for servers that have not listed yet."));
  all.push_back(duration("mcp.list_retry", milliseconds(1'000), 10, kHour,
                         "Delay before a server that failed to list is asked again; doubled after each "
                         "failure."));
  all.push_back(duration("mcp.drain_grace", Limits().drain_grace, 0, kHour,
                         "How long the shutdown waits for active calls."));
  all.push_back(choice("mcp.failure_details", "auto", {"auto", "everyone", "administrators"},
                       "Which clients get command lines, stderr and addresses of failed servers."));
}

void add_access(std::vector<Definition>& all) {
  all.push_back(
      choice("auth.mode", "auto", {"auto", "none", "token"},
             "Whether clients need a token. auto: if an administrator's token is set, a user exists, or "
             "a listener is neither loopback nor a Unix socket."));
  all.push_back(integer("auth.max_user_tokens", 100, 0, 1'000'000, Applies::at_once,
                        "Valid tokens that a user who is not an administrator can have."));
  all.push_back(duration("auth.max_token_lifetime", std::chrono::milliseconds(0), 0, 87'600 * kHour,
                         "Time after which a new token expires at the latest; 0: tokens need not expire."));
  all.push_back(integer("registry.max_user_servers", 100, 0, 20'000, Applies::at_once,
                        "Servers that a user who is not an administrator can register."));
  all.push_back(integer("registry.max_user_secrets", 100, 0, 10'000, Applies::at_once,
                        "Secrets that a user who is not an administrator can store."));
  all.push_back(choice("registry.drift_default", "flag", {"accept", "flag", "quarantine"},
                       "Drift policy of new servers whose rows do not set one."));
  all.push_back(boolean("registry.allow_private_addresses", false,
                        "Whether users' servers may have private and loopback addresses."));
}

std::vector<Definition> make_definitions() {
  std::vector<Definition> all;
  add_pool_limits(all);
  add_message_limits(all);
  add_clocks(all);
  add_lists(all);
  add_access(all);
  std::ranges::sort(all, {}, &Definition::full_key);
  return all;
}

}  // namespace

std::span<const Definition> definitions() {
  static const std::vector<Definition> kDefinitions = make_definitions();
  return kDefinitions;
}

const Definition* find_definition(std::string_view full_key) {
  const std::span<const Definition> all = definitions();
  const auto found = std::ranges::lower_bound(all, full_key, {}, &Definition::full_key);
  return found != all.end() && found->full_key == full_key ? &*found : nullptr;
}

pool::Clocks with_clock_defaults(pool::Clocks clocks, const Configuration& configuration) {
  const pool::Clocks program;
  for (const ClockDefinition& definition : kClockDefinitions) {
    if (clocks.*definition.clock == program.*definition.clock &&
        !configuration.is_default(definition.full_key))
      clocks.*definition.clock = configuration.duration(definition.full_key);
  }
  return clocks;
}

}  // namespace fairlead::registry
