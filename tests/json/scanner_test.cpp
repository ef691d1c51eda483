// Tests of Scanner against the grammar of JSON (R1.6: a message is validated once, and its slices are exact).
#include "fairlead/json/scanner.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "cases.hpp"
#include "reference_validator.hpp"

#ifndef FAIRLEAD_SHARED_DIR
#define FAIRLEAD_SHARED_DIR ""
#endif

namespace fairlead::json {
namespace {

// The same as validate(), but the scanner pauses after every `bytes` bytes.
std::optional<Error> validate_with_pauses(std::string_view text, std::size_t max_depth, std::size_t bytes) {
  ScanPauses pauses(bytes);
  Scanner scanner(text, max_depth);
  scanner.pause_with(pauses);
  std::string_view value;
  bool done = scanner.value(value);
  for (std::size_t parts = 0; scanner.paused(); ++parts) {
    if (parts > text.size()) return Error(ErrorKind::parse, "the pauses do not end");
    done = scanner.value(value);
  }
  if (done && scanner.finish()) return std::nullopt;
  return scanner.error();
}

std::string problem_with(std::string_view text, std::size_t max_depth = kDefaultMaxDepth) {
  const auto error = validate(text, max_depth);
  const std::string problem = error ? error->message() : "none";
  for (const std::size_t bytes : {1u, 2u, 7u}) {
    const auto in_parts = validate_with_pauses(text, max_depth, bytes);
    EXPECT_EQ(in_parts ? in_parts->message() : "none", problem) << bytes << " bytes a part: " << text;
  }
  return problem;
}

bool accepts(std::string_view text, std::size_t max_depth = kDefaultMaxDepth) {
  return problem_with(text, max_depth) == "none";
}

// Reads one value member by member, down to the scalars.
bool walk(Scanner& scanner) {
  std::string_view key;
  std::string_view value;
  bool escaped = false;
  const auto type = scanner.peek();
  if (type == Type::object) {
    if (!scanner.begin_object()) return false;
    while (scanner.next_member(key, escaped)) {
      if (!walk(scanner)) return false;
    }
    return !scanner.failed();
  }
  if (type == Type::array) {
    if (!scanner.begin_array()) return false;
    while (scanner.next_element()) {
      if (!walk(scanner)) return false;
    }
    return !scanner.failed();
  }
  return scanner.value(value);
}

bool accepts_piecewise(std::string_view text, std::size_t max_depth = kDefaultMaxDepth) {
  Scanner scanner(text, max_depth);
  return walk(scanner) && scanner.finish();
}

// Reads like rpc::Message: the outer object member by member, its values as a whole.
bool accepts_as_message(std::string_view text) {
  Scanner scanner(text);
  std::string_view key;
  std::string_view value;
  bool escaped = false;
  if (scanner.peek() != Type::object) return scanner.value(value) && scanner.finish();
  if (!scanner.begin_object()) return false;
  while (scanner.next_member(key, escaped) && scanner.value(value)) {
  }
  return scanner.finish();
}

// Succeeds if the reference validator and the scanner, in each way of reading, agree whether `text` is valid.
testing::AssertionResult agree(std::string_view text) {
  const bool expected = reference::is_valid(text);
  if (accepts(text) != expected)
    return testing::AssertionFailure() << "whole text: " << !expected << ": " << text;
  if (accepts_piecewise(text) != expected)
    return testing::AssertionFailure() << "piecewise: " << !expected << ": " << text;
  if (accepts_as_message(text) != expected)
    return testing::AssertionFailure() << "as message: " << !expected << ": " << text;
  return testing::AssertionSuccess();
}

std::string nested(std::size_t depth, std::string_view open, std::string_view close) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += open;
  for (std::size_t i = 0; i < depth; ++i) text += close;
  return text;
}

// Text that ends where readable memory ends, or begins where readable memory begins.
class GuardedText {
 public:
  GuardedText(std::string_view text, bool at_end) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    inside_ = (text.size() / page_ + 1) * page_;
    base_ =
        static_cast<char*>(mmap(nullptr, inside_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(base_ + page_, inside_, PROT_READ | PROT_WRITE), 0);
    char* to = at_end ? base_ + page_ + inside_ - text.size() : base_ + page_;
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    text_ = std::string_view(to, text.size());
  }
  GuardedText(const GuardedText&) = delete;
  GuardedText& operator=(const GuardedText&) = delete;
  ~GuardedText() { munmap(base_, inside_ + 2 * page_); }

  std::string_view text() const { return text_; }

 private:
  std::size_t page_;
  std::size_t inside_ = 0;
  char* base_ = nullptr;
  std::string_view text_;
};

std::filesystem::path suite_directory() {
  const char* set = std::getenv("FAIRLEAD_SHARED");
  const std::filesystem::path shared = set != nullptr ? set : FAIRLEAD_SHARED_DIR;
  return shared / "data" / "json-parsing";
}

std::string contents(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// Files of the suite that a parser may accept or reject according to RFC 8259, and whether the scanner
// accepts them (docs/json.md).
const std::map<std::string_view, bool> kOptionalAccepted = {
    {"i_number_double_huge_neg_exp", true},
    {"i_number_huge_exp", true},
    {"i_number_neg_int_huge_exp", true},
    {"i_number_pos_double_huge_exp", true},
    {"i_number_real_neg_overflow", true},
    {"i_number_real_pos_overflow", true},
    {"i_number_real_underflow", true},
    {"i_number_too_big_neg_int", true},
    {"i_number_too_big_pos_int", true},
    {"i_number_very_big_negative_int", true},
    {"i_object_key_lone_2nd_surrogate", true},
    {"i_string_1st_surrogate_but_2nd_missing", true},
    {"i_string_1st_valid_surrogate_2nd_invalid", true},
    {"i_string_UTF-16LE_with_BOM", false},
    {"i_string_UTF-8_invalid_sequence", false},
    {"i_string_UTF8_surrogate_U+D800", false},
    {"i_string_incomplete_surrogate_and_escape_valid", true},
    {"i_string_incomplete_surrogate_pair", true},
    {"i_string_incomplete_surrogates_escape_valid", true},
    {"i_string_invalid_lonely_surrogate", true},
    {"i_string_invalid_surrogate", true},
    {"i_string_invalid_utf-8", false},
    {"i_string_inverted_surrogates_U+1D11E", true},
    {"i_string_iso_latin_1", false},
    {"i_string_lone_second_surrogate", true},
    {"i_string_lone_utf8_continuation_byte", false},
    {"i_string_not_in_unicode_range", false},
    {"i_string_overlong_sequence_2_bytes", false},
    {"i_string_overlong_sequence_6_bytes", false},
    {"i_string_overlong_sequence_6_bytes_null", false},
    {"i_string_truncated-utf-8", false},
    {"i_string_utf16BE_no_BOM", false},
    {"i_string_utf16LE_no_BOM", false},
    {"i_structure_500_nested_arrays", true},
    {"i_structure_UTF-8_BOM_empty_object", false},
};

TEST(ScannerTest, AcceptsValidTexts) {
  for (const auto text : cases::kAccepted) {
    EXPECT_EQ(problem_with(text), "none") << text;
    EXPECT_TRUE(agree(text));
  }
}

TEST(ScannerTest, RejectsInvalidTexts) {
  for (const auto text : cases::kRejected) {
    EXPECT_FALSE(accepts(text)) << text;
    EXPECT_TRUE(agree(text));
  }
}

TEST(ScannerTest, AgreesWithJsonTestSuite) {
  const auto directory = suite_directory();
  if (!std::filesystem::is_directory(directory)) GTEST_SKIP() << "shared test data not present";
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().stem().string();
    const std::string text = contents(entry.path());
    const bool expected = name.front() == 'y' || (name.front() == 'i' && kOptionalAccepted.at(name));
    EXPECT_EQ(accepts(text), expected) << name;
    EXPECT_TRUE(agree(text)) << name;
    ++seen;
  }
  EXPECT_GE(seen, 300u);
}

TEST(ScannerTest, RejectsEveryTruncation) {
  ASSERT_TRUE(accepts(cases::kSample));
  for (std::size_t size = 0; size < cases::kSample.size(); ++size) {
    const auto text = cases::kSample.substr(0, size);
    EXPECT_FALSE(accepts(text)) << text;
    EXPECT_FALSE(accepts_piecewise(text)) << text;
    EXPECT_FALSE(accepts_as_message(text)) << text;
  }
}

TEST(ScannerTest, AgreesWithReferenceOnEveryChangedByte) {
  std::string text(cases::kSample);
  for (char& place : text) {
    const char kept = place;
    for (int byte = 0; byte < 256; ++byte) {
      place = static_cast<char>(byte);
      ASSERT_TRUE(agree(text));
    }
    place = kept;
  }
}

TEST(ScannerTest, AgreesWithReferenceOnEveryRemovedOrRepeatedByte) {
  const std::string sample(cases::kSample);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    ASSERT_TRUE(agree(sample.substr(0, i) + sample.substr(i + 1)));
    ASSERT_TRUE(agree(sample.substr(0, i) + sample[i] + sample.substr(i)));
  }
}

TEST(ScannerTest, NeverReadsOutsideText) {
  std::vector<std::string> texts;
  for (const auto text : cases::kAccepted) texts.emplace_back(text);
  for (const auto text : cases::kRejected) texts.emplace_back(text);
  for (std::size_t size = 0; size <= cases::kSample.size(); ++size)
    texts.emplace_back(cases::kSample.substr(0, size));
  for (std::size_t size = 0; size < 200; ++size) texts.push_back("\"" + std::string(size, 'a'));
  for (const auto& text : texts) {
    for (const bool at_end : {true, false}) {
      const GuardedText guarded(text, at_end);
      EXPECT_TRUE(agree(guarded.text()));
    }
  }
}

TEST(ScannerTest, ChecksUtf8AtEveryAlignment) {
  const std::vector<std::string> sequences = {"\x7f",
                                              "\xc2\x80",
                                              "\xdf\xbf",
                                              "\xe0\xa0\x80",
                                              "\xed\x9f\xbf",
                                              "\xee\x80\x80",
                                              "\xef\xbf\xbf",
                                              "\xf0\x90\x80\x80",
                                              "\xf4\x8f\xbf\xbf",
                                              "\xc1\xbf",
                                              "\xc2",
                                              "\xc2\xc2\x80",
                                              "\xe0\x9f\xbf",
                                              "\xe1\x80",
                                              "\xe1\x80\xc0",
                                              "\xed\xa0\x80",
                                              "\xf0\x8f\xbf\xbf",
                                              "\xf1\x80\x80",
                                              "\xf1\x80",
                                              "\xf4\x90\x80\x80",
                                              "\xf5\x80\x80\x80",
                                              "\xff",
                                              "\x80",
                                              "\xc2\x80\x80",
                                              "\xe1\x80\x80\x80",
                                              "\xf1\x80\x80\x80\x80"};
  for (std::size_t before = 0; before < 132; ++before) {
    for (const auto& sequence : sequences) {
      for (const std::size_t after : {0u, 1u, 15u, 70u}) {
        const std::string run = std::string(before, 'a') + sequence + std::string(after, 'b');
        ASSERT_TRUE(agree("\"" + run + "\""));
        ASSERT_TRUE(
            agree("[\"\xc3\xa9\",\"" + run + "\"]"));  // the rest of the text is known to be UTF-8 by then
        ASSERT_TRUE(agree("\"" + run));
      }
    }
  }
}

TEST(ScannerTest, ChecksStringsOfEveryLengthAndAlignment) {
  for (std::size_t before = 0; before < 70; ++before) {
    for (std::size_t length = 0; length < 140; ++length) {
      const std::string text = std::string(before, ' ') + "[\"" + std::string(length, 'x') + "\",\"\\\"\"]";
      ASSERT_TRUE(accepts(text)) << text;
      ASSERT_TRUE(accepts_piecewise(text)) << text;
      const std::string control = std::string(before, ' ') + "\"" + std::string(length, 'x') + "\x1f\"";
      ASSERT_FALSE(accepts(control)) << control;
    }
  }
}

TEST(ScannerTest, ChecksNumbersOfEveryLength) {
  for (std::size_t whole = 1; whole < 24; ++whole) {
    for (std::size_t part = 0; part < 24; ++part) {
      for (const std::string_view tail : {"", "e5", "E-12", "e", "e+", "x", ".", "-"}) {
        std::string number = std::string(whole, '7');
        if (part > 0) number += "." + std::string(part - 1, '3');
        number += tail;
        ASSERT_TRUE(agree(number));
        ASSERT_TRUE(agree("[" + number + ",0123456789012345678901234567890]"));
        ASSERT_TRUE(agree("[" + number + ",1,                              2]"));
      }
    }
  }
}

TEST(ScannerTest, CountsDepthEquallyForWholeValuesAndMembers) {
  for (const auto& [open, close] : {std::pair{"[", "]"}, {"{\"a\":[", "]}"}}) {
    const std::size_t levels = std::string_view(open).size() > 1 ? 2 : 1;
    const std::string fits = nested(kDefaultMaxDepth / levels, open, close);
    EXPECT_TRUE(accepts(fits));
    EXPECT_TRUE(accepts_piecewise(fits));
    const std::string over = "[" + fits + "]";
    EXPECT_FALSE(accepts(over));
    EXPECT_FALSE(accepts_piecewise(over));
  }
  // An object opened with begin_object() counts towards the depth of its values.
  EXPECT_TRUE(accepts_as_message("{\"a\":" + nested(511, "[", "]") + "}"));
  EXPECT_FALSE(accepts_as_message("{\"a\":" + nested(512, "[", "]") + "}"));
  EXPECT_TRUE(accepts("1", 0));
  EXPECT_FALSE(accepts("[]", 0));
}

TEST(ScannerTest, HandlesHundredThousandLevels) {
  const std::string arrays = nested(100'000, "[", "]");
  EXPECT_EQ(problem_with(arrays), "nested deeper than max_depth (512) at byte 512");
  EXPECT_TRUE(accepts(arrays, static_cast<std::size_t>(-1)));
  EXPECT_TRUE(accepts(arrays, 100'000));
  EXPECT_FALSE(accepts(arrays, 99'999));
  const std::string mixed = nested(50'000, "{\"a\":[", "]}");
  EXPECT_TRUE(accepts(mixed, static_cast<std::size_t>(-1)));
  EXPECT_FALSE(accepts(std::string(100'000, '['), static_cast<std::size_t>(-1)));
  // The kind of bracket is remembered at every depth.
  for (const std::size_t at : {1u, 63u, 64u, 65u, 511u, 512u, 513u, 50'000u}) {
    std::string wrong = mixed;
    std::swap(wrong[wrong.size() - 2 * at], wrong[wrong.size() - 2 * at + 1]);
    EXPECT_FALSE(accepts(wrong, static_cast<std::size_t>(-1))) << at;
  }
}

TEST(ScannerTest, ReturnsExactRanges) {
  const std::string_view text =
      R"( { "jsonrpc" : "2.0" ,"id":1.0,"params" : { "a" : [ 1 , 2 ] } , "\u0069d":null } )";
  Scanner scanner(text);
  std::vector<std::string> seen;
  std::string_view key;
  std::string_view value;
  bool escaped = false;
  ASSERT_TRUE(scanner.begin_object());
  while (scanner.next_member(key, escaped)) {
    EXPECT_EQ(escaped, key == R"(\u0069d)");
    ASSERT_TRUE(scanner.value(value));
    seen.push_back(std::string(key) + "=" + std::string(value));
  }
  EXPECT_TRUE(scanner.finish());
  const std::vector<std::string> expected = {R"(jsonrpc="2.0")", "id=1.0", R"(params={ "a" : [ 1 , 2 ] })",
                                             R"(\u0069d=null)"};
  EXPECT_EQ(seen, expected);
}

TEST(ScannerTest, ReadsNestedContainersMemberByMember) {
  Scanner scanner(R"({"a":[],"b":[1,[2,3],{}],"c":{"d":4}})");
  std::string_view key;
  std::string_view value;
  bool escaped = false;
  ASSERT_TRUE(scanner.begin_object() && scanner.next_member(key, escaped));
  ASSERT_TRUE(scanner.begin_array());
  EXPECT_FALSE(scanner.next_element());
  ASSERT_TRUE(scanner.next_member(key, escaped) && scanner.begin_array());
  std::string elements;
  while (scanner.next_element() && scanner.value(value)) elements += std::string(value) + ";";
  EXPECT_EQ(elements, "1;[2,3];{};");
  ASSERT_TRUE(scanner.next_member(key, escaped) && scanner.begin_object() &&
              scanner.next_member(key, escaped));
  EXPECT_EQ(key, "d");
  ASSERT_TRUE(scanner.value(value));
  EXPECT_FALSE(scanner.next_member(key, escaped));
  EXPECT_FALSE(scanner.next_member(key, escaped));
  EXPECT_TRUE(scanner.finish());
}

TEST(ScannerTest, KeepsFirstError) {
  Scanner scanner("[1,x]");
  std::string_view value;
  EXPECT_FALSE(scanner.value(value));
  const std::string first = scanner.error().message();
  EXPECT_FALSE(scanner.value(value) || scanner.begin_object() || scanner.begin_array() ||
               scanner.next_element());
  bool escaped = false;
  EXPECT_FALSE(scanner.next_member(value, escaped) || scanner.finish() || scanner.peek());
  EXPECT_EQ(scanner.error().message(), first);
  EXPECT_EQ(scanner.error().kind(), ErrorKind::parse);
}

TEST(ScannerTest, ErrorNamesProblemAndOffset) {
  EXPECT_EQ(problem_with("[1,x]"), "unexpected character 'x' at byte 3");
  EXPECT_EQ(problem_with("[1,\x01]"), "unexpected byte 0x01 at byte 3");
  EXPECT_EQ(problem_with("\xef\xbb\xbf{}"), "unexpected byte 0xef at byte 0");
  EXPECT_EQ(problem_with(""), "text ends too early at byte 0");
  EXPECT_EQ(problem_with("{\"a\":"), "text ends too early at byte 5");
  EXPECT_EQ(problem_with("[\"abc"), "text ends inside a string at byte 5");
  EXPECT_EQ(problem_with("[\"abc\\u12"), "text ends inside a string at byte 9");
  EXPECT_EQ(problem_with("-"), "text ends inside a number at byte 1");
  EXPECT_EQ(problem_with("01"), "unexpected text after the value at byte 1");
  EXPECT_EQ(problem_with("[01]"), "unexpected character '1' at byte 2");
  EXPECT_EQ(problem_with("\"\\x\""), "invalid escape in a string at byte 2");
  EXPECT_EQ(problem_with("\"a\nb\""), "unescaped control character in a string at byte 2");
  EXPECT_EQ(problem_with("[\"abc\xc3\xa9\xff\"]"), "invalid UTF-8 at byte 7");
  EXPECT_EQ(problem_with("[[[1]]]", 2), "nested deeper than max_depth (2) at byte 2");
  EXPECT_EQ(problem_with("{} {}"), "unexpected text after the value at byte 3");
}

// R2.1: such a text must be minified before it is sent as a line.
TEST(ScannerTest, ReportsLineBreaksBetweenTokensOnly) {
  const auto breaks = [](std::string_view text) {
    Scanner scanner(text);
    std::string_view value;
    EXPECT_TRUE(scanner.value(value) && scanner.finish()) << text;
    return scanner.saw_line_break();
  };
  EXPECT_FALSE(breaks("{\"a\": [1,\t2]}"));
  EXPECT_FALSE(breaks("\"\\n\\r\""));
  for (const auto text :
       {"{\n}", "[\r]", "[1\n,2]", "{\"a\"\n:1}", "{\"a\":\r1}", "\n1", "1\n", "[1,  \t \n2]"}) {
    EXPECT_TRUE(breaks(text)) << text;
  }
}

TEST(ScannerTest, PeekDoesNotAdvance) {
  Scanner scanner(" {\"a\":-1}");
  EXPECT_EQ(scanner.peek(), Type::object);
  EXPECT_EQ(scanner.peek(), Type::object);
  EXPECT_EQ(Scanner("").peek(), std::nullopt);
  EXPECT_EQ(Scanner(" ?").peek(), std::nullopt);
  EXPECT_EQ(Scanner("-1").peek(), Type::number);
  EXPECT_EQ(Scanner("false").peek(), Type::boolean);
  EXPECT_EQ(type_of("null"), Type::null);
  EXPECT_EQ(type_of("\"\""), Type::string);
  EXPECT_EQ(type_of("[]"), Type::array);
}

}  // namespace
}  // namespace fairlead::json
