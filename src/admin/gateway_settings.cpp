#include "admin/gateway_settings.hpp"

namespace fairlead::admin {

namespace {

std::size_t size_of(const registry::Configuration& values, std::string_view full_key) {
  return static_cast<std::size_t>(values.integer(full_key));
}

gateway::FailureDetails failure_details_of(const registry::Configuration& values) {
  const std::string value = values.string("mcp.failure_details");
  if (value == "everyone") return gateway::FailureDetails::everyone;
  return value == "administrators" ? gateway::FailureDetails::administrators
                                   : gateway::FailureDetails::automatic;
}

pool::PoolLimits pool_limits_of(const registry::Configuration& values) {
  pool::PoolLimits limits;
  limits.max_stdio_processes = size_of(values, "mcp.max_stdio_processes");
  limits.max_start_queue = size_of(values, "mcp.max_start_queue");
  if (const std::size_t starts = size_of(values, "mcp.max_concurrent_starts"); starts > 0)
    limits.max_concurrent_starts = starts;
  limits.max_calls = size_of(values, "mcp.max_calls");
  limits.max_waiting_calls = size_of(values, "mcp.max_waiting_calls");
  limits.max_client_waiting_calls = size_of(values, "mcp.max_client_waiting_calls");
  limits.evict_after = values.duration("mcp.evict_after");
  return limits;
}

}  // namespace

void apply_to(const registry::Configuration& values, gateway::Config& config) {
  config.limits = pool_limits_of(values);
  config.max_frame_bytes = size_of(values, "mcp.max_frame_bytes");
  config.max_body_bytes = size_of(values, "mcp.max_body_bytes");
  config.buffers.max_client_buffer_bytes = size_of(values, "mcp.max_client_buffer_bytes");
  config.buffers.max_buffer_bytes = size_of(values, "mcp.max_buffer_bytes");
  config.max_noise_frames = size_of(values, "mcp.max_noise_frames");
  config.list_wait = values.duration("mcp.list_wait");
  config.list_retry = values.duration("mcp.list_retry");
  config.drain_grace = values.duration("mcp.drain_grace");
  config.failure_details = failure_details_of(values);
}

}  // namespace fairlead::admin
