// Findings as sentences.
#pragma once

#include <vector>

#include "fairlead/json/schema.hpp"
#include "json/schema/run.hpp"

namespace fairlead::json::schema {

// REQUIRES: `run` has refused the value.
SchemaViolation describe_first(const Table& table, const Run& run);
std::vector<SchemaViolation> describe_all(const Table& table, const Run& run);

}  // namespace fairlead::json::schema
