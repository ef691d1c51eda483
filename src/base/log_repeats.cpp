#include "base/log_repeats.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace fairlead {

namespace {

constexpr std::size_t kMaxTextBytes = 1u << 10;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Returns whether a number that begins after `before` is part of a sentence: not of a name, and not the whole
// value of a field, which is often a count.
bool begins_number(char before) {
  return before == ' ' || before == '(' || before == '"' || before == '[' || before == '\n';
}

// Numbers include times such as 2026-11-18T22:56:05.123Z.
bool continues_number(char c) {
  return is_digit(c) || std::string_view(".,:-TZ").contains(c);
}

// Hashes the text without the numbers in its sentences (FNV-1a).
std::uint64_t key_of(LogLevel level, std::string_view text) {
  std::uint64_t hash = 14695981039346656037u ^ static_cast<std::uint64_t>(level);
  char before = ' ';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool number = is_digit(text[i]) && begins_number(before);
    if (number) {
      while (i + 1 < text.size() && continues_number(text[i + 1])) ++i;
    }
    before = text[i];
    hash = (hash ^ static_cast<unsigned char>(number ? '#' : text[i])) * 1099511628211u;
  }
  return hash;
}

}  // namespace

bool LogRepeats::admit(Time now, LogLevel level, std::string_view text) {
  if (level < LogLevel::warning) return true;
  const std::uint64_t key = key_of(level, text);
  const auto known = std::ranges::find(lines_, key, &Line::key);
  if (known != lines_.end()) {
    ++known->suppressed;
    known->text = utf8_prefix(text.substr(0, text.find('\n')), kMaxTextBytes);
    lines_.splice(lines_.begin(), lines_, known);
    return false;
  }
  lines_.push_front(Line{key, level, now, 0, {}});
  if (lines_.size() > kMaxLines) {
    if (lines_.back().suppressed > 0) dropped_.push_back(summary(lines_.back(), now));
    lines_.pop_back();
  }
  return true;
}

std::vector<LogRepeats::Summary> LogRepeats::due(Time now) {
  std::vector<Summary> summaries = std::move(dropped_);
  dropped_.clear();
  for (auto line = lines_.begin(); line != lines_.end();) {
    if (now - line->since < interval_) {
      ++line;
      continue;
    }
    if (line->suppressed > 0) summaries.push_back(summary(*line, now));
    line = lines_.erase(line);
  }
  return summaries;
}

std::vector<LogRepeats::Summary> LogRepeats::drain(Time now) {
  std::vector<Summary> summaries = std::move(dropped_);
  dropped_.clear();
  for (const Line& line : lines_) {
    if (line.suppressed > 0) summaries.push_back(summary(line, now));
  }
  lines_.clear();
  return summaries;
}

LogRepeats::Summary LogRepeats::summary(const Line& line, Time now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - line.since).count();
  std::string text = line.text + " … repeated " + std::to_string(line.suppressed) +
                     (line.suppressed == 1 ? " time in " : " times in ") + std::to_string(seconds) + "s";
  return Summary{line.level, std::move(text)};
}

}  // namespace fairlead
