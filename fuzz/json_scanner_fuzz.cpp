// Runs the json layer on arbitrary bytes: compares the scanner with the reference validator, and checks on
// valid text everything that is built on the scanner.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "../tests/json/reference_validator.hpp"
#include "fairlead/json/scanner.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "json/splice.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::json;

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_valid(std::string_view text) {
  return !validate(text).has_value();
}

bool walk(Scanner& scanner) {
  std::string_view part;
  bool escaped = false;
  const auto type = scanner.peek();
  if (type == Type::object && scanner.begin_object()) {
    while (scanner.next_member(part, escaped) && walk(scanner)) {
    }
    return !scanner.failed();
  }
  if (type == Type::array && scanner.begin_array()) {
    while (scanner.next_element() && walk(scanner)) {
    }
    return !scanner.failed();
  }
  return scanner.value(part);
}

// A scan that pauses has the same result.
void check_pauses(std::string_view text, std::size_t bytes) {
  ScanPauses pauses(bytes);
  Scanner scanner(text);
  scanner.pause_with(pauses);
  std::string_view value;
  for (std::size_t parts = 0; !scanner.value(value) && scanner.paused(); ++parts)
    require(parts <= text.size());
  const bool valid = !scanner.failed() && scanner.finish();
  const auto error = validate(text);
  require(valid == !error && (valid || scanner.error().message() == error->message()));
}

void check_agreement(std::string_view text, bool valid) {
  check_pauses(text, 1);
  check_pauses(text, 9);
  require(is_valid(text) == valid);
  Scanner scanner(text);
  require((walk(scanner) && scanner.finish()) == valid);
  if (!valid)
    require(scanner.error().message().find(" at byte ") != std::string::npos &&
            scanner.offset() <= text.size());
}

void check_minify(std::string_view text) {
  const std::string small = minify(text);
  require(is_valid(small) && minify(small) == small);
  require(small.find_first_of("\r\n") == std::string::npos);
  require(Raw::parse(text)->text() == View(text).text());
}

// Reads every value through View.
void check_views(View view) {
  static_cast<void>(view.as_bool());
  static_cast<void>(view.as_int());
  static_cast<void>(view.as_double());
  if (const auto string = view.as_string()) {
    std::string written;
    append_string(written, *string);
    require(is_valid(written) && View(written).as_string() == string);
  }
  view.each_element([](View element) { return check_views(element), true; });
  view.each_member([](std::string_view key, bool escaped, View value) {
    require(escaped || unescape(key) == key);
    check_views(value);
    return true;
  });
}

// Replaces, removes or keeps each member, depending on the bits of `choice`.
void check_splice(std::string_view text, std::uint32_t choice) {
  const Bytes bytes = Bytes::copy_of(text);
  require(Splice(bytes).joined().view() == text);
  const View view(bytes.view());
  if (!view.is(Type::object)) return;
  Splice splice(bytes);
  std::size_t left = 0;
  view.each_member([&](std::string_view, bool, View value) {
    if ((choice & 3) == 1) splice.replace(value.text(), Bytes::constant("[1]"));
    if ((choice & 3) == 2) splice.remove_member(value.text());
    if ((choice & 3) != 2) ++left;
    choice = choice >> 2 | choice << 30;
    return true;
  });
  if (choice & 1) splice.insert_member(view.text(), "new", "null"), ++left;
  const Bytes edited = splice.joined();
  require(is_valid(edited.view()) && View(edited.view()).size() == left);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size, so that the sanitizer detects a read past the end.
  const std::vector<char> copy(data, data + size);
  const std::string_view text(copy.data(), copy.size());
  const bool valid = reference::is_valid(text);
  check_agreement(text, valid);
  std::string written;
  append_string(written, text);
  require(is_valid(written));
  if (!valid) return 0;
  check_minify(text);
  check_views(View(text));
  for (const std::uint32_t choice : {0x55555555u, 0xaaaaaaaau, 0x12341234u, 0x9a6f31c8u})
    check_splice(text, choice);
  return 0;
}
