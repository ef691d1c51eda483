// MetaArguments: the arguments of a meta-tool. Errors have kind validation and messages for models. Private
// to the layer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::gateway {

class MetaArguments {
 public:
  // Finds the members `names` of `arguments`, which is an object, null or absent. Fails if there are other
  // members, or if a member is repeated, in any spelling: two readers of JSON may disagree on its value.
  // `arguments` and `names` outlive this object.
  static Result<MetaArguments> read(json::View arguments, std::initializer_list<std::string_view> names);

  // Returns an absent view if there is no such argument, or if it is null.
  json::View value(std::string_view name) const noexcept;
  // Fail if the argument has another type; required_string() also if it is absent or empty.
  Result<std::string> required_string(std::string_view name) const;
  Result<std::optional<std::string>> optional_string(std::string_view name) const;
  Result<std::int64_t> integer(std::string_view name, std::int64_t fallback, std::int64_t least,
                               std::int64_t most) const;

 private:
  std::vector<std::pair<std::string_view, json::View>> values_;
};

}  // namespace fairlead::gateway
