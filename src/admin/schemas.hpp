// The component schemas of the OpenAPI document. Private to the layer.
#pragma once

#include <span>
#include <string_view>

namespace fairlead::admin {

struct ComponentSchema {
  std::string_view name;
  std::string_view json;  // JSON Schema 2020-12
};

std::span<const ComponentSchema> component_schemas() noexcept;

}  // namespace fairlead::admin
