#include "fairlead/registry/model.hpp"

#include <array>
#include <utility>

namespace fairlead::registry {

namespace {

template <class Enum>
struct Named {
  Enum value;
  std::string_view name;
};

constexpr std::array kVisibilities = {Named{Visibility::hidden, "hidden"},
                                      Named{Visibility::visible, "visible"}, Named{Visibility::user, "user"}};
constexpr std::array kDriftPolicies = {Named{DriftPolicy::accept, "accept"}, Named{DriftPolicy::flag, "flag"},
                                       Named{DriftPolicy::quarantine, "quarantine"}};
constexpr std::array kEndpointModes = {Named{EndpointMode::direct, "direct"},
                                       Named{EndpointMode::discover, "discover"}};
constexpr std::array kRoles = {Named{Role::user, "user"}, Named{Role::admin, "admin"}};
constexpr std::array kDriftStatuses = {
    Named{DriftStatus::open, "open"}, Named{DriftStatus::approved, "approved"},
    Named{DriftStatus::rejected, "rejected"}, Named{DriftStatus::reverted, "reverted"}};

template <class Enum, std::size_t size>
std::string_view name_of(const std::array<Named<Enum>, size>& table, Enum value) noexcept {
  for (const auto& [known, name] : table) {
    if (known == value) return name;
  }
  return {};
}

template <class Enum, std::size_t size>
std::optional<Enum> value_of(const std::array<Named<Enum>, size>& table, std::string_view text) noexcept {
  for (const auto& [value, name] : table) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Visibility visibility) noexcept {
  return name_of(kVisibilities, visibility);
}
std::string_view to_string(DriftPolicy policy) noexcept {
  return name_of(kDriftPolicies, policy);
}
std::string_view to_string(EndpointMode mode) noexcept {
  return name_of(kEndpointModes, mode);
}
std::string_view to_string(Role role) noexcept {
  return name_of(kRoles, role);
}
std::string_view to_string(DriftStatus status) noexcept {
  return name_of(kDriftStatuses, status);
}

std::optional<Visibility> parse_visibility(std::string_view text) noexcept {
  return value_of(kVisibilities, text);
}
std::optional<DriftPolicy> parse_drift_policy(std::string_view text) noexcept {
  return value_of(kDriftPolicies, text);
}
std::optional<EndpointMode> parse_endpoint_mode(std::string_view text) noexcept {
  return value_of(kEndpointModes, text);
}
std::optional<Role> parse_role(std::string_view text) noexcept {
  return value_of(kRoles, text);
}
std::optional<DriftStatus> parse_drift_status(std::string_view text) noexcept {
  return value_of(kDriftStatuses, text);
}

const std::string& Server::transport() const noexcept {
  static const std::string kStdio = "stdio";
  static const std::string kHttp = "http";
  return spec.is_process() ? kStdio : kHttp;
}

}  // namespace fairlead::registry
