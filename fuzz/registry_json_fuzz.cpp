// Reads bodies of the admin API from arbitrary bytes. The first byte selects the kind of the body. An
// accepted row must be written and read back unchanged, and so must the row after a patch with the same text.
#include <cstdint>
#include <string>
#include <string_view>

#include "codec_checks.hpp"
#include "fairlead/json/scanner.hpp"
#include "registry/codes.hpp"
#include "registry/configuration.hpp"
#include "registry/json.hpp"
#include "registry/rules.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::registry;
using rpc::checks::require;

void require_error(const Error& error) {
  require(error.detail().failure_code == kInvalidRow || error.detail().failure_code == kForbidden);
  require(!error.message().empty());
  require(error.detail().pointer.empty() || error.detail().pointer.front() == '/');
}

template <class T>
void check_row(const Result<T>& row, Result<T> (*parse)(json::View)) {
  if (!row) return require_error(row.error());
  const json::Raw text = to_json(*row);
  require(!json::validate(text.text()));
  const Result<T> read = parse(json::View(text));
  require(read.has_value());
  require(to_json(*read).text() == text.text());
}

template <class T>
void check_patch(const T& row, json::View patch, Result<T> (*parse)(json::View)) {
  check_row(patched(row, patch), parse);
}

void check_server(json::View body) {
  const Result<Server> row = new_server(body);
  check_row(row, &parse_server);
  if (!row) return;
  check_patch(*row, body, &parse_server);
  require(!json::validate(to_json(*row, Redaction::secrets).text()));
  Principal user;
  user.issuer = kRegistryIssuer;
  user.subject = user.user = "u";
  const Result<void> checked = check_change(user, nullptr, *row, *Configuration::defaults());
  if (!checked) require_error(checked.error());
}

void check_patch_of_server(json::View patch) {
  static const Server kRow =
      new_server(json::View(std::string_view(
                     R"({"name":"a","config":{"url":"https://e.example/","headers":{"A":"b"}},
          "tools":{"rename":{"a":"b"}},"metadata":{"x":[1]}})")))
          .value();
  check_patch(kRow, patch, &parse_server);
}

void check_token(json::View body) {
  const Result<Token> row = new_token(body, Time(std::chrono::milliseconds(1'700'000'000'000)));
  check_row(row, &parse_token);
}

void check_values(json::View value) {
  for (const Definition& definition : definitions()) {
    const Result<json::Raw> valid = validate(definition, value);
    if (!valid) continue;
    require(validate(definition, json::View(*valid))->text() == valid->text());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Result<json::Raw> body = json::Raw::parse(text);
  if (!body) return 0;
  const json::View view(*body);
  switch (data[0] % 7) {
    case 0: check_server(view); break;
    case 1: check_patch_of_server(view); break;
    case 2: check_row(new_endpoint(view), &parse_endpoint); break;
    case 3: check_row(new_user(view), &parse_user); break;
    case 4: check_row(new_group(view), &parse_group); break;
    case 5: check_token(view); break;
    default: check_values(view); break;
  }
  return 0;
}
