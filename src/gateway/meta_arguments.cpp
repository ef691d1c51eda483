#include "gateway/meta_arguments.hpp"

#include <algorithm>

#include "base/suggestion.hpp"

namespace fairlead::gateway {
namespace {

// A longer key is not the name of any argument.
constexpr std::size_t kMaxArgumentKeyBytes = 128;

Error argument_error(std::string message) {
  return Error(ErrorKind::validation, std::move(message));
}

Error unknown_argument(std::string_view name, std::initializer_list<std::string_view> names) {
  const std::vector<std::string> known(names.begin(), names.end());
  const std::string_view meant = closest_word(name, known);
  std::string message = "unknown argument `" + std::string(name.substr(0, kMaxArgumentKeyBytes)) + "`";
  if (!meant.empty()) message += " (did you mean `" + std::string(meant) + "`?)";
  if (std::find(names.begin(), names.end(), std::string_view("params")) != names.end())
    message += ": put the parameters of the tool into `params`";
  return argument_error(std::move(message));
}

}  // namespace

Result<MetaArguments> MetaArguments::read(json::View arguments,
                                          std::initializer_list<std::string_view> names) {
  MetaArguments read;
  if (arguments.absent() || arguments.is(json::Type::null)) return read;
  if (!arguments.is(json::Type::object)) return argument_error("arguments is not an object");
  std::optional<Error> problem;
  arguments.each_member([&](std::string_view key, bool escaped, json::View value) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    const auto* const known = std::find(names.begin(), names.end(), std::string_view(name));
    if (known == names.end()) {
      problem = unknown_argument(name, names);
    } else if (std::ranges::count(read.values_, *known, &std::pair<std::string_view, json::View>::first) >
               0) {
      problem = argument_error("argument `" + name + "` is repeated");
    } else {
      read.values_.emplace_back(*known, value);
    }
    return !problem;
  });
  if (problem) return *problem;
  return read;
}

json::View MetaArguments::value(std::string_view name) const noexcept {
  for (const auto& [known, value] : values_) {
    if (known == name && !value.is(json::Type::null)) return value;
  }
  return json::View();
}

Result<std::string> MetaArguments::required_string(std::string_view name) const {
  Result<std::optional<std::string>> text = optional_string(name);
  if (!text) return text.error();
  if (!*text || (*text)->empty()) return argument_error("argument `" + std::string(name) + "` is missing");
  return std::move(**text);
}

Result<std::optional<std::string>> MetaArguments::optional_string(std::string_view name) const {
  const json::View found = value(name);
  if (found.absent()) return std::optional<std::string>();
  std::optional<std::string> text = found.as_string();
  if (!text) return argument_error("argument `" + std::string(name) + "` is not a string");
  return text;
}

Result<std::int64_t> MetaArguments::integer(std::string_view name, std::int64_t fallback, std::int64_t least,
                                            std::int64_t most) const {
  const json::View found = value(name);
  if (found.absent()) return fallback;
  const std::optional<std::int64_t> number = found.as_int();
  if (number && *number >= least && *number <= most) return *number;
  return argument_error("argument `" + std::string(name) + "` is not an integer from " +
                        std::to_string(least) + " to " + std::to_string(most));
}

}  // namespace fairlead::gateway
