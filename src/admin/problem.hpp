// Problem: an error of the admin API as problem+json (RFC 9457). docs/errors.md lists the codes. Private to
// the layer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fairlead/base/error.hpp"
#include "fairlead/http/server.hpp"

namespace fairlead::admin {

// The codes of the admin API that are not codes of the registry or of a failed server.
namespace codes {

inline constexpr std::string_view kUnauthenticated = "unauthenticated";
inline constexpr std::string_view kInvalidToken = "invalid_token";
inline constexpr std::string_view kTokenExpired = "token_expired";
inline constexpr std::string_view kTokenRevoked = "token_revoked";
inline constexpr std::string_view kUserDisabled = "user_disabled";
inline constexpr std::string_view kForbidden = "forbidden";
inline constexpr std::string_view kNotFound = "not_found";
inline constexpr std::string_view kMethodNotAllowed = "method_not_allowed";
inline constexpr std::string_view kNameTaken = "name_taken";
inline constexpr std::string_view kVersionMismatch = "version_mismatch";
inline constexpr std::string_view kInvalidParameter = "invalid_parameter";
inline constexpr std::string_view kInvalidCursor = "invalid_cursor";
inline constexpr std::string_view kInvalidHeader = "invalid_header";
inline constexpr std::string_view kMalformedJson = "malformed_json";
inline constexpr std::string_view kInvalidRow = "invalid_row";
inline constexpr std::string_view kBodyTooLarge = "body_too_large";
inline constexpr std::string_view kUnsupportedMediaType = "unsupported_media_type";
inline constexpr std::string_view kIdempotencyKeyReused = "idempotency_key_reused";
inline constexpr std::string_view kIdempotencyKeyInUse = "idempotency_key_in_use";
inline constexpr std::string_view kTooManyRequests = "too_many_requests";
inline constexpr std::string_view kInUse = "in_use";
inline constexpr std::string_view kDatabaseUnavailable = "database_unavailable";
inline constexpr std::string_view kDatabaseFull = "database_full";
inline constexpr std::string_view kDatabaseBusy = "database_busy";
inline constexpr std::string_view kInternalError = "internal_error";

}  // namespace codes

struct ProblemCode {
  std::string_view code;
  int status;
  std::string_view title;
  std::string_view remedy;
};

// Returns all codes of the admin API.
std::span<const ProblemCode> problem_codes() noexcept;

// Returns an error with one of the codes above.
Error problem(std::string_view code, std::string message, std::string pointer = std::string());

// Returns the status of the response that reports `error`.
int status_of(const Error& error);

// Returns `error` for users who are not administrators: without the reason why the database cannot be used,
// which may contain its host and its name.
Error without_database_details(const Error& error);

// Returns the response that reports `error`. `instance` is the path of the request.
http::Response problem_response(const Error& error, std::string_view instance, std::string_view request_id);

}  // namespace fairlead::admin
