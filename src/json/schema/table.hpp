// The compiled form of a schema: a table of nodes, one for each subschema, that refer to each other and to
// their rules by number. It is built once and never changes.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/decimal.hpp"
#include "json/regex.hpp"
#include "json/schema/formats.hpp"
#include "json/schema/keywords.hpp"
#include "json/tape.hpp"

namespace fairlead::json::schema {

using NodeId = std::uint32_t;
inline constexpr std::uint32_t kNone = 0xffffffff;  // no node, no rules, no pattern
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// A bit for each json::Type, and one for integers. A set with the number bit has the integer bit too.
using TypeSet = std::uint8_t;
inline constexpr TypeSet kAllTypes = 0x7f;
inline constexpr TypeSet kIntegerBit = 0x40;
constexpr TypeSet bit_of(Type type) noexcept {
  return static_cast<TypeSet>(1u << static_cast<unsigned>(type));
}

// Text of the schema itself, or of a metaschema it refers to.
struct Document {
  std::string text;
  Tape tape;
  std::vector<NodeId> nodes;  // by the index of the schema in the tape
};

// A subschema and where it stands.
struct Location {
  std::uint32_t document;
  Index at;
  std::uint32_t resource;  // the nearest schema with an $id that it is part of
};

struct NumberRules {
  std::optional<Decimal> minimum;
  std::optional<Decimal> exclusive_minimum;
  std::optional<Decimal> maximum;
  std::optional<Decimal> exclusive_maximum;
  std::optional<Decimal> multiple_of;
};

struct StringRules {
  std::uint64_t min_length = 0;
  std::uint64_t max_length = kUnlimited;
  std::uint32_t pattern = kNone;
  Format format = Format::none;
};

struct ArrayRules {
  std::uint64_t min_items = 0;
  std::uint64_t max_items = kUnlimited;
  bool unique = false;
  std::vector<NodeId> prefix = {};
  NodeId rest = kNone;  // for elements after the prefix
  NodeId contains = kNone;
  std::uint64_t min_contains = 1;
  std::uint64_t max_contains = kUnlimited;
};

// A name that `properties` or `required` mentions.
struct NamedMember {
  std::string_view name;
  NodeId node = kNone;
  std::uint32_t required = kNone;  // its place among the required ones
  std::uint32_t after = 0;         // the member that was declared next: what a value will likely have next
};

struct ObjectRules {
  std::vector<NamedMember> members;  // by length, then bytes
  std::uint32_t first = 0;           // the one declared first
  std::vector<std::string_view> required;
  std::vector<std::pair<std::uint32_t, NodeId>> patterns;
  NodeId additional = kNone;
  NodeId names = kNone;
  std::uint64_t min_members = 0;
  std::uint64_t max_members = kUnlimited;
  struct Dependency {
    Keyword keyword;
    std::string_view name;
    std::vector<std::string_view> needs;
  };
  std::vector<Dependency> dependencies;

  // The member of that name, or kNone. `guess` is tried first.
  std::uint32_t find(std::string_view name, std::uint32_t guess) const noexcept;
};

// enum and const.
struct ValueRules {
  Keyword keyword;
  std::vector<std::string_view> strings;  // sorted
  std::vector<Index> others;              // in the node's document
};

// A keyword that applies other schemas to the same value: $ref, allOf, if, dependentSchemas and their like.
struct Applicator {
  Keyword keyword;
  std::vector<NodeId> nodes;           // if: condition, then, else (kNone where absent)
  TypeSet types = 0;                   // anyOf: what fits a branch that only asks for a type
  std::string_view name = {};          // dependentSchemas: the member that must be there
  std::uint32_t dynamic_name = kNone;  // $dynamicRef: which anchor is looked for at run time
};

struct Node {
  TypeSet types = kAllTypes;  // none: the schema `false`
  bool plain = true;          // there is nothing but `types`
  std::uint32_t resource = 0;
  std::uint32_t number = kNone;
  std::uint32_t string = kNone;
  std::uint32_t array = kNone;
  std::uint32_t object = kNone;
  std::uint32_t first_values = 0;  // a range of `values`
  std::uint32_t last_values = 0;
  std::uint32_t first_applicator = 0;  // a range of `applicators`
  std::uint32_t last_applicator = 0;
  NodeId unevaluated_items = kNone;
  NodeId unevaluated_properties = kNone;
};

struct Table {
  SchemaOptions options;
  std::vector<std::unique_ptr<Document>> documents;  // the first is the schema itself
  std::deque<std::string> decoded;  // names that are spelled with escapes; they stay in place
  std::vector<Location> locations;  // by NodeId, as are the nodes
  std::vector<Node> nodes;
  std::vector<NumberRules> numbers;
  std::vector<StringRules> strings;
  std::vector<ArrayRules> arrays;
  std::vector<ObjectRules> objects;
  std::vector<ValueRules> values;
  std::vector<Applicator> applicators;
  std::vector<Regex> patterns;
  // For each name of a $dynamicAnchor, the resources that have it and the schema it is on; by resource.
  std::vector<std::vector<std::pair<std::uint32_t, NodeId>>> dynamic_anchors;
};

// Which subschemas apply to the same value and lead back to themselves: no value could ever be judged.
// Returns one node on such a round, or kNone.
NodeId find_endless_round(const Table& table);

}  // namespace fairlead::json::schema
