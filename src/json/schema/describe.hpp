// Converts the violations that a Validator found into messages.
#pragma once

#include <vector>

#include "fairlead/json/schema.hpp"
#include "json/schema/validator.hpp"

namespace fairlead::json::schema {

// Returns the first violation, or the reason why the validation stopped before it had a result.
// REQUIRES: validator.accepts() has returned false.
SchemaViolation describe_first(const Table& table, const Validator& validator);
// Returns all violations. REQUIRES: as describe_first().
std::vector<SchemaViolation> describe_all(const Table& table, const Validator& validator);

}  // namespace fairlead::json::schema
