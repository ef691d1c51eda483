#include "search/parameter_text.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace fairlead::search {
namespace {

constexpr int kMaxSchemaDepth = 6;

class ParameterText {
 public:
  explicit ParameterText(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  void add_schema(json::View schema, int depth) {
    if (depth > kMaxSchemaDepth || !schema.is(json::Type::object) || full()) return;
    schema["properties"].each_member([this, depth](std::string_view key, bool escaped, json::View property) {
      append(escaped ? json::unescape(key) : std::string(key));
      if (!property.is(json::Type::object)) return !full();
      if (const std::optional<std::string> description = property["description"].as_string())
        append(*description);
      add_schema(property, depth + 1);
      add_schema(property["items"], depth + 1);
      return !full();
    });
  }
  std::string take() { return std::move(text_); }

 private:
  bool full() const noexcept { return text_.size() >= max_bytes_; }
  void append(std::string_view text) {
    if (full()) return;
    if (!text_.empty()) text_ += ' ';
    text_.append(text.substr(0, max_bytes_ - text_.size()));
  }

  std::size_t max_bytes_;
  std::string text_;
};

}  // namespace

std::string parameter_text(json::View schema, std::size_t max_bytes) {
  ParameterText text(max_bytes);
  text.add_schema(schema, 0);
  return text.take();
}

}  // namespace fairlead::search
