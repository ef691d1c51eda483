#include "clients/describe_changes.hpp"

#include <algorithm>

#include "base/references.hpp"

namespace fairlead::clients {

namespace {

constexpr std::string_view kRedacted = "\"***\"";

bool has_reference(const std::string& text) {
  const Result<std::vector<TextPiece>> pieces = parse_references(text);
  if (!pieces) return false;
  return std::ranges::any_of(*pieces,
                             [](const TextPiece& piece) { return std::holds_alternative<Reference>(piece); });
}

// Collects the lines. A path is both a JSON pointer, to find secrets, and the text that is shown.
class Describer {
 public:
  explicit Describer(const std::vector<LiteralSecret>& secrets) : secrets_(secrets) {}

  struct Path {
    std::string pointer;
    std::string text;

    Path member(const std::string& name) const {
      return {pointer + "/" + name, text.empty() ? name : text + "." + name};
    }
    Path element(std::size_t index) const {
      const std::string number = std::to_string(index);
      return {pointer + "/" + number, text + "[" + number + "]"};
    }
  };

  // Adds a line for each scalar and each empty list or object.
  void add_value(const Path& path, json::View value) {
    if (path.text == "metadata") {
      lines.push_back(path.text + ": " + std::to_string(value.size()) + " members");
    } else if (value.is(json::Type::object) && value.size() > 0) {
      each_member(value,
                  [&](const std::string& name, json::View member) { add_value(path.member(name), member); });
    } else if (value.is(json::Type::array) && value.size() > 0) {
      std::size_t index = 0;
      value.each_element([&](json::View element) {
        add_value(path.element(index++), element);
        return true;
      });
    } else {
      lines.push_back(path.text + ": " + shown(path, value));
    }
  }

  void add_patch(const Path& path, json::View before, json::View patch) {
    if (before.absent() && !patch.is(json::Type::null)) return add_value(path, patch);
    if (patch.is(json::Type::object) && before.is(json::Type::object) && path.text != "metadata") {
      each_member(patch, [&](const std::string& name, json::View change) {
        add_patch(path.member(name), before[name], change);
      });
      return;
    }
    const std::string after = patch.is(json::Type::null) ? "(removed)" : shown(path, patch);
    if (path.text == "metadata") {
      lines.push_back("metadata: changed");
    } else {
      lines.push_back(path.text + ": " + shown(path, before) + " -> " + after);
    }
  }

  std::vector<std::string> lines;

 private:
  template <class Visit>
  static void each_member(json::View object, Visit&& visit) {
    object.each_member([&](std::string_view key, bool escaped, json::View value) {
      visit(escaped ? json::unescape(key) : std::string(key), value);
      return true;
    });
  }

  // Returns the JSON of a value; a list may contain secrets too.
  std::string shown(const Path& path, json::View value) const {
    const bool within = std::ranges::any_of(secrets_, [&](const LiteralSecret& secret) {
      return secret.pointer == path.pointer || secret.pointer.starts_with(path.pointer + "/");
    });
    const bool private_value =
        path.pointer.starts_with("/config/env") || path.pointer.starts_with("/config/headers");
    const bool literal = !value.is(json::Type::string) || !has_reference(value.as_string().value_or(""));
    return (within || private_value) && literal ? std::string(kRedacted) : std::string(value.text());
  }

  const std::vector<LiteralSecret>& secrets_;
};

}  // namespace

std::vector<std::string> describe_row(json::View row, const std::vector<LiteralSecret>& secrets) {
  Describer describer(secrets);
  describer.add_value({}, row);
  return std::move(describer.lines);
}

std::vector<std::string> describe_patch(json::View before, json::View patch,
                                        const std::vector<LiteralSecret>& secrets) {
  Describer describer(secrets);
  describer.add_patch({}, before, patch);
  return std::move(describer.lines);
}

}  // namespace fairlead::clients
