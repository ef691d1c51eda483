#include "admin/problem.hpp"

#include <algorithm>
#include <array>

#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "registry/codes.hpp"
#include "sql/database.hpp"

namespace fairlead::admin {

namespace {

constexpr std::array kProblemCodes = std::to_array<ProblemCode>({
    {codes::kUnauthenticated, 401, "Unauthenticated",
     "Send an API token in the header `Authorization: Bearer TOKEN`."},
    {codes::kInvalidToken, 401, "Invalid token", "Check the token, or create another one (POST /tokens)."},
    {codes::kTokenExpired, 401, "Expired token", "Create another token (POST /tokens)."},
    {codes::kTokenRevoked, 401, "Revoked token", "Create another token (POST /tokens)."},
    {codes::kUserDisabled, 401, "Disabled user", "Ask an administrator to enable the user of the token."},
    {codes::kForbidden, 403, "Forbidden",
     "Ask an administrator for the change; the message names the rule that forbids it."},
    {codes::kNotFound, 404, "Not found", "Check the path and the id or the name in it."},
    {codes::kMethodNotAllowed, 405, "Method not allowed", "Use one of the methods in the header Allow."},
    {codes::kNameTaken, 409, "Name taken", "Choose another name, or change the existing row (PATCH)."},
    {codes::kInUse, 409, "In use", "Change or remove the rows first that refer to this one."},
    {registry::kLastAdministrator, 409, "Last administrator",
     "Make another user an administrator first, or use the administrator's own token."},
    {registry::kSecretKeyMissing, 409, "No key for secrets",
     "Start the gateway with the key: --secret-key-file FILE, --secret-key-command COMMAND, or "
     "FAIRLEAD_SECRET_KEY."},
    {registry::kSecretKeyMismatch, 409, "Other key for secrets",
     "Start the gateway with the key with which the secrets were stored."},
    {registry::kNoNewSecretKey, 409, "No new key for secrets",
     "Configure two keys, one in each line, at every gateway of the database: the new one first, then the "
     "current one. Restart the gateways, and repeat the request."},
    {codes::kVersionMismatch, 412, "Version mismatch",
     "Read the row again, apply the change to it, and send its new ETag in If-Match."},
    {codes::kInvalidParameter, 400, "Invalid parameter",
     "Correct the query; /openapi.json lists the parameters of each operation."},
    {codes::kInvalidCursor, 400, "Invalid cursor",
     "Use a nextCursor of the same list, or begin again without a cursor."},
    {codes::kInvalidHeader, 400, "Invalid header", "Correct the header that the message names."},
    {codes::kMalformedJson, 400, "Malformed JSON", "Send one JSON object in UTF-8."},
    {codes::kInvalidRow, 422, "Invalid content", "Correct the members that `errors` names."},
    {codes::kBodyTooLarge, 413, "Body too large", "Send a smaller body."},
    {codes::kUnsupportedMediaType, 415, "Unsupported media type",
     "Send Content-Type: application/json, or application/merge-patch+json with PATCH."},
    {codes::kIdempotencyKeyReused, 422, "Idempotency key reused",
     "Use another Idempotency-Key for another request."},
    {codes::kIdempotencyKeyInUse, 409, "Idempotency key in use",
     "Wait for the response to the first request with this key. If its gateway was lost, read the rows to "
     "see "
     "whether the change was made, and use another key."},
    {codes::kTooManyRequests, 429, "Too many requests", "Repeat the request after Retry-After."},
    {codes::kDatabaseUnavailable, 503, "Database unavailable",
     "Repeat the request later; reads and calls continue with the state that was last read."},
    {sql::kCommitOutcomeUnknown, 503, "Outcome unknown",
     "Read the row again: the database was lost while the change was committed."},
    {codes::kDatabaseBusy, 503, "Database busy",
     "Repeat the request later. If it keeps failing, look for another program that has locked the database, "
     "or for a database that is overloaded."},
    {codes::kDatabaseFull, 507, "Database full", "Free space on the disk of the database."},
    {codes::kInternalError, 500, "Internal error", "See the log of the gateway for the request id."},
});

const ProblemCode* find_code(std::string_view code) {
  const auto found = std::ranges::find(kProblemCodes, code, &ProblemCode::code);
  return found == kProblemCodes.end() ? nullptr : &*found;
}

// Returns the code for an error that has no code of the admin API.
const ProblemCode& code_for(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::validation:
    case ErrorKind::parse: return *find_code(codes::kInvalidRow);
    case ErrorKind::authorization: return *find_code(codes::kForbidden);
    case ErrorKind::resource_exhausted: return *find_code(codes::kTooManyRequests);
    case ErrorKind::frame_too_large: return *find_code(codes::kBodyTooLarge);
    default: return *find_code(codes::kInternalError);
  }
}

// The status of failures of servers and of the gateway, which have codes of their own.
int status_of_failure(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::timeout: return 504;
    case ErrorKind::resource_exhausted: return 429;
    case ErrorKind::validation: return 422;
    case ErrorKind::closed:
    case ErrorKind::cancelled: return 503;
    default: return 502;
  }
}

struct Description {
  std::string_view code;
  std::string_view title;
  std::string_view remedy;
  int status;
};

Description describe(const Error& error) {
  std::string_view code = error.detail().failure_code;
  const bool has_default = error.kind() == ErrorKind::closed || error.kind() == ErrorKind::cancelled ||
                           error.kind() == ErrorKind::timeout;
  if (code.empty() && has_default) code = default_failure_code(error.kind());
  const ProblemCode* known = find_code(code);
  if (!known && !code.empty() && !remedy_for(code).empty())
    return {code, "Server failed", remedy_for(code), status_of_failure(error)};
  if (!known) known = &code_for(error);
  return {known->code, known->title, known->remedy, known->status};
}

// Errors in the content of a request name the place, which may be the whole document.
void write_errors(json::Writer& writer, const Error& error, const Description& what) {
  const bool is_about_content = what.status == 422 || what.code == codes::kMalformedJson;
  if (!is_about_content && error.detail().pointer.empty()) return;
  writer.key("errors").begin_array().begin_object();
  writer.key("pointer").string(error.detail().pointer).key("detail").string(error.message());
  writer.end_object().end_array();
}

std::chrono::seconds retry_after(const Error& error) {
  const std::chrono::milliseconds given =
      error.detail().retry_after.value_or(std::chrono::milliseconds(1000));
  return std::max(std::chrono::ceil<std::chrono::seconds>(given), std::chrono::seconds(1));
}

}  // namespace

std::span<const ProblemCode> problem_codes() noexcept {
  return kProblemCodes;
}

Error problem(std::string_view code, std::string message, std::string pointer) {
  const int status = find_code(code)->status;
  const ErrorKind kind = status == 401 || status == 403 ? ErrorKind::authorization
                         : status == 429                ? ErrorKind::resource_exhausted
                         : status >= 500                ? ErrorKind::io
                                                        : ErrorKind::validation;
  return Error(kind, std::move(message)).with([&](ErrorDetail& detail) {
    detail.failure_code = code;
    detail.pointer = std::move(pointer);
  });
}

int status_of(const Error& error) {
  return describe(error).status;
}

Error without_database_details(const Error& error) {
  const std::string& code = error.detail().failure_code;
  if (code != codes::kDatabaseUnavailable && code != codes::kDatabaseFull &&
      code != sql::kCommitOutcomeUnknown)
    return error;
  const std::string_view message =
      code == sql::kCommitOutcomeUnknown
          ? "the database was lost while the change was committed; it may have been made or not"
          : "the database cannot be used now; an administrator sees the reason";
  const ErrorDetail& all = error.detail();
  return Error(error.kind(), std::string(message)).with([&](ErrorDetail& detail) {
    detail.failure_code = all.failure_code;
    detail.retry_after = all.retry_after;
  });
}

http::Response problem_response(const Error& error, std::string_view instance, std::string_view request_id) {
  const Description what = describe(error);
  json::Writer writer;
  writer.begin_object();
  writer.key("type").string("/docs#" + std::string(what.code));
  writer.key("title").string(what.title).key("status").integer(what.status);
  writer.key("detail").string(what.code == codes::kInternalError ? "internal error" : error.message());
  writer.key("instance").string(instance).key("code").string(what.code);
  const std::string& remedy = error.detail().remedy;
  writer.key("remedy").string(remedy.empty() ? what.remedy : std::string_view(remedy));
  writer.key("requestId").string(request_id);
  write_errors(writer, error, what);
  writer.end_object();
  http::Response response(what.status);
  response.headers.add("Content-Type", "application/problem+json");
  response.headers.add("Cache-Control", "no-store");
  response.headers.add("Request-Id", request_id);
  if (what.status == 429 || what.status == 503 || what.status == 507)
    response.headers.add("Retry-After", std::to_string(retry_after(error).count()));
  if (what.status == 401)
    response.headers.add("WWW-Authenticate", what.code == codes::kUnauthenticated
                                                 ? "Bearer realm=\"fairlead\""
                                                 : "Bearer realm=\"fairlead\", error=\"invalid_token\"");
  response.body.push_back(writer.finish().bytes());
  return response;
}

}  // namespace fairlead::admin
