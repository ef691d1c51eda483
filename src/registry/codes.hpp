// The codes of the registry's errors. Private to the library.
#pragma once

#include <string_view>

namespace fairlead::registry {

// Codes in ErrorDetail::failure_code of the errors of the registry, beside those of the database (such as
// sql::kDatabaseUnavailable). ErrorDetail::pointer names the member of the request that is wrong.
inline constexpr std::string_view kNotFound = "not_found";    // also for rows that the actor must not see
inline constexpr std::string_view kForbidden = "forbidden";   // kind authorization
inline constexpr std::string_view kNameTaken = "name_taken";  // kind validation
inline constexpr std::string_view kVersionMismatch = "version_mismatch";  // kind validation
inline constexpr std::string_view kInvalidRow = "invalid_row";            // kind validation, with a pointer
inline constexpr std::string_view kInUse = "in_use";  // kind validation: other rows refer to the row
inline constexpr std::string_view kLastAdministrator = "last_administrator";  // kind validation
// Kind validation: no key that encrypts secrets is configured, or it is not that of the database.
inline constexpr std::string_view kSecretKeyMissing = "secret_key_missing";
inline constexpr std::string_view kSecretKeyMismatch = "secret_key_mismatch";
inline constexpr std::string_view kNoNewSecretKey = "no_new_secret_key";  // kind validation

}  // namespace fairlead::registry
