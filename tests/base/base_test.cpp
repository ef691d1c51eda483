#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "fairlead/base/bytes.hpp"
#include "fairlead/base/error.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/base/log_rate_limit.hpp"
#include "fairlead/base/result.hpp"

namespace fairlead {
namespace {

// ---- errors (R5.6) ---------------------------------------------------------------------------------------

TEST(ErrorTest, EveryKindHasUniqueName) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::validation); ++kind) {
    names.insert(to_string(static_cast<ErrorKind>(kind)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorKind::validation) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(ErrorTest, TimeoutMessageContainsMilliseconds) {
  const Error error = Error::timeout("`add`", std::chrono::milliseconds(250));
  EXPECT_EQ(error.to_string(), "timed out: `add` got no answer within 250 ms");
  EXPECT_EQ(error.detail().waited, std::chrono::milliseconds(250));
}

TEST(ErrorTest, ToStringContainsLastStderrLines) {
  const Error error = Error(ErrorKind::process_exited, "it ended").with([](ErrorDetail& d) {
    d.stderr_lines = {"one", "two"};
  });
  EXPECT_EQ(error.to_string(), "process exited: it ended\nits stderr:\n  one\n  two");
}

TEST(ErrorTest, ChangingCopyDoesNotChangeOriginal) {
  const Error original = Error::rpc(-1, "x");
  const Error changed = Error(original).with([](ErrorDetail& d) { d.rpc_code = -2; });
  EXPECT_EQ(original.detail().rpc_code, -1);
  EXPECT_EQ(changed.detail().rpc_code, -2);
}

TEST(ResultTest, CarriesValueOrError) {
  const Result<int> good = 3;
  const Result<int> bad = Error(ErrorKind::io, "no");
  EXPECT_EQ(*good, 3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message(), "no");
}

// ---- bytes -----------------------------------------------------------------------------------------------

TEST(BytesTest, PartKeepsBufferAlive) {
  Bytes part;
  {
    const Bytes whole = Bytes::copy_of("hello world");
    part = whole.part(whole.view().substr(6));
  }
  EXPECT_EQ(part.view(), "world");
}

TEST(BytesTest, AdoptedShortStringSurvivesMoves) {
  Bytes a = Bytes::adopt("short");  // short string optimization: stored inside the string object
  const Bytes b = std::move(a);
  const Bytes c = b;
  EXPECT_EQ(c.view(), "short");
  EXPECT_TRUE(a.empty());
}

TEST(BytesTest, ReclaimReturnsMemoryOnlyIfThereIsNoOtherReference) {
  Bytes mine = Bytes::adopt(std::string(100'000, 'x'));
  Bytes other = mine.part(mine.view().substr(5, 10));
  EXPECT_EQ(mine.reclaim().capacity(), std::string().capacity());
  EXPECT_EQ(other.view(), "xxxxxxxxxx");
  other = Bytes();
  const std::string back = mine.reclaim();
  EXPECT_GE(back.capacity(), 100'000u);
  EXPECT_TRUE(back.empty());
  EXPECT_TRUE(mine.empty());
}

TEST(BytesTest, JoinConcatenatesAndConstantRefersToLiteral) {
  EXPECT_EQ(Bytes::join("a", "", "bc", "d").view(), "abcd");
  EXPECT_EQ(Bytes::constant("lit").view(), "lit");
  EXPECT_TRUE(Bytes().empty());
}

// ---- log (R6.2) ------------------------------------------------------------------------------------------

std::string logged(LogFormat format, std::string_view message, std::initializer_list<LogField> fields) {
  std::string out;
  const Log log(LogLevel::debug, format, [&](std::string_view line) { out += line; });
  log.info(message, fields);
  return out;
}

TEST(LogTest, TextFormatQuotesValuesAndPreventsForgedLines) {
  const std::string line =
      logged(LogFormat::text, "hi\nthere", {{"c", "x\n2026 fake"}, {"a", "1"}, {"b", "two words"}});
  EXPECT_TRUE(line.ends_with(" info hi there a=1 b=\"two words\"\n  c: x\n    2026 fake\n")) << line;
}

TEST(LogTest, TextFormatIndentsEveryLineOfValue) {
  const std::string line = logged(LogFormat::text, "m", {{"reason", "one\r\n\n\tat x\x1b[2J\nend\n\n"}});
  EXPECT_TRUE(line.ends_with(" info m\n  reason: one\n    \n     at x\\u001b[2J\n    end\n")) << line;
  EXPECT_TRUE(logged(LogFormat::text, "m", {{"k", "\n"}}).ends_with(" info m\n  k: \n"));
  const std::string many(std::size_t{1} << 20, '\n');
  EXPECT_LT(logged(LogFormat::text, "m", {{"k", many}}).size(), 8 * Limits::kMaxLogFieldBytes);
}

TEST(LogTest, JsonLineHasTimeLevelMessageAndFields) {
  const std::string line = logged(LogFormat::json, "say \"x\"", {{"id", "\"7\""}});
  EXPECT_TRUE(line.starts_with("{\"time\":\"20")) << line;
  EXPECT_NE(line.find("\"level\":\"info\",\"message\":\"say \\\"x\\\"\",\"id\":\"\\\"7\\\"\"}\n"),
            std::string::npos)
      << line;
}

TEST(LogTest, InvalidUtf8IsReplaced) {
  const std::string line = logged(LogFormat::json, "x",
                                  {{"frame",
                                    "a\xff"
                                    "b\xc3\xa4\xed\xa0\x80"
                                    "c"}});
  EXPECT_NE(line.find("\"frame\":\"a\\ufffdb\xc3\xa4\\ufffd\\ufffd\\ufffdc\""), std::string::npos) << line;
}

TEST(LogTest, ControlCharactersAreEscapedInMessageAndFields) {
  const std::string hostile =
      "a\x1b[2Jb\xc2\x9b"
      "31mc\x7f\xff";
  const std::string escaped = "a\\u001b[2Jb\\u009b31mc\\u007f\\ufffd";
  const std::string text = logged(LogFormat::text, hostile, {{"field", hostile}});
  EXPECT_NE(text.find(" info " + escaped + " field=\"" + escaped + "\"\n"), std::string::npos) << text;
  const std::string json = logged(LogFormat::json, hostile, {{"field", hostile}});
  EXPECT_NE(json.find("\"message\":\"" + escaped + "\",\"field\":\"" + escaped + "\"}\n"), std::string::npos)
      << json;
}

TEST(LogTest, LongValuesAreTruncated) {
  const std::string id(5 << 20, '7');
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    const std::string line = logged(format, id, {{"id", id}, {"view", std::string_view(id)}});
    EXPECT_LT(line.size(), 3 * Limits::kMaxLogFieldBytes + 500);
    EXPECT_NE(line.find("... (truncated, 5242880 bytes)"), std::string::npos);
  }
}

TEST(LogTest, JsonLinesWriteNumbersAsNumbers) {
  const std::string line = logged(LogFormat::json, "x",
                                  {{"pid", 12},
                                   {"bytes", std::size_t{1} << 40},
                                   {"ok", true},
                                   {"text", "12"},
                                   LogField::json_number("id", "7"),
                                   LogField::json_number("name", "\"7\"")});
  EXPECT_NE(line.find("\"pid\":12,\"bytes\":1099511627776,\"ok\":true,\"text\":\"12\",\"id\":7,"
                      "\"name\":\"\\\"7\\\"\"}"),
            std::string::npos)
      << line;
}

TEST(LogTest, LinesBelowLevelAreNotWritten) {
  int lines = 0;
  const Log log(LogLevel::warning, LogFormat::text, [&](std::string_view) { ++lines; });
  log.info("no");
  log.warning("yes");
  Log().error("a log without a sink");
  EXPECT_EQ(lines, 1);
}

TEST(LogTest, FullPipeDropsBytesInsteadOfBlocking) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const std::string much(1 << 20, 'x');
  const std::size_t written =
      write_without_blocking(ends[1], much);  // returns although nothing reads the pipe
  EXPECT_LT(written, much.size());
  EXPECT_GT(written, 0u);
  ::close(ends[0]);
  ::close(ends[1]);
}

// Replaces stderr by a pipe that nothing reads except read_output().
class UnreadStderr {
 public:
  UnreadStderr() : saved_(::dup(STDERR_FILENO)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    read_end_ = ends[0];
  }
  ~UnreadStderr() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    ::close(read_end_);
  }

  std::string read_output() const {
    std::string all(1 << 20, '\0');
    const ssize_t n = ::read(read_end_, all.data(), all.size());
    all.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return all;
  }

 private:
  int saved_;
  int read_end_;
};

TEST(LogTest, DroppedLinesAreCountedBeforeNextLine) {
  constexpr int kLines = 2000;  // more than the capacity of a pipe
  std::string before;
  std::string after;
  {
    const UnreadStderr pipe;
    const Log log = Log::to_stderr(LogLevel::info);
    for (int i = 0; i < kLines; ++i) log.info(std::string(1000, 'x'));
    before = pipe.read_output();
    log.info("once more");
    after = pipe.read_output();
  }
  const auto whole_lines = std::count(before.begin(), before.end(), '\n');
  EXPECT_LT(whole_lines, kLines);
  EXPECT_NE(after.find("log lines dropped: stderr was not read lines=" +
                       std::to_string(kLines - whole_lines) + "\n"),
            std::string::npos)
      << after;
  EXPECT_TRUE(after.ends_with(" info once more\n")) << after;
}

TEST(LogRateLimitTest, AdmitsLinesPerIntervalAndCountsSuppressedLines) {
  using std::chrono::seconds;
  LogRateLimit limit(2, seconds(10));
  const LogRateLimit::Time start{};
  EXPECT_EQ(limit.admit(start), 0u);
  EXPECT_EQ(limit.admit(start), 0u);
  EXPECT_EQ(limit.admit(start), std::nullopt);
  EXPECT_EQ(limit.admit(start + seconds(9)), std::nullopt);
  EXPECT_EQ(limit.suppressed_count(), 2u);
  EXPECT_EQ(limit.admit(start + seconds(10)), 2u);
  EXPECT_EQ(limit.admit(start + seconds(10)), 0u);
  EXPECT_EQ(limit.admit(start + seconds(10)), std::nullopt);
}

}  // namespace
}  // namespace fairlead
