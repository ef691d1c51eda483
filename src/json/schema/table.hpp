// Table: the compiled form of a schema. It has one node for each subschema; nodes refer to each other and to
// their rules by index. Immutable after it is built.
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

// The text of the schema, or of a metaschema that it refers to.
struct Document {
  std::string text;
  Tape tape;
  std::vector<NodeId> nodes;  // by tape index: the node of the schema there, or kNone
};

// The place of a subschema.
struct Location {
  std::uint32_t document;  // index in Table::documents
  TapeIndex entry;         // in the tape of the document
  std::uint32_t resource;  // the schema resource it belongs to: the closest enclosing schema with an $id
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
  std::vector<NodeId> prefix = {};  // schemas of the first elements
  NodeId rest = kNone;              // schema of the elements after them
  NodeId contains = kNone;
  std::uint64_t min_contains = 1;
  std::uint64_t max_contains = kUnlimited;
};

// A member name that `properties` or `required` mentions.
struct NamedMember {
  std::string_view name;
  NodeId node = kNone;
  std::uint32_t required_index = kNone;  // index in ObjectRules::required; kNone if not required
  std::uint32_t next_declared = 0;       // index of the member declared next: likely the next one in a value
};

struct ObjectRules {
  std::vector<NamedMember> members;  // sorted by length, then by bytes
  std::uint32_t first_declared = 0;  // index of the member declared first
  std::vector<std::string_view> required;
  std::vector<std::pair<std::uint32_t, NodeId>> patterns;  // patternProperties: the pattern and its schema
  NodeId additional = kNone;                               // additionalProperties
  NodeId property_names = kNone;
  std::uint64_t min_members = 0;
  std::uint64_t max_members = kUnlimited;
  struct Dependency {
    Keyword keyword;
    std::string_view name;
    std::vector<std::string_view> required_names;  // members that must be present if `name` is
  };
  std::vector<Dependency> dependencies;

  // Returns the index of the member, or kNone. Compares with the member at `guess` first.
  std::uint32_t find(std::string_view name, std::uint32_t guess) const noexcept;
};

// The values that `enum` or `const` allows.
struct AllowedValues {
  Keyword keyword;
  std::vector<std::string_view> strings;  // sorted
  std::vector<TapeIndex> others;          // values that are not strings, in the document of the node
};

// A keyword that applies other schemas to the same value, such as $ref, allOf, if and dependentSchemas.
struct Applicator {
  Keyword keyword;
  std::vector<NodeId> nodes;           // if: condition, then, else (kNone where absent)
  TypeSet types = 0;                   // anyOf: types accepted by branches without keywords other than `type`
  std::string_view name = {};          // dependentSchemas: applies only to objects with this member
  std::uint32_t dynamic_name = kNone;  // $dynamicRef: the anchor to resolve at run time
};

struct Node {
  TypeSet types = kAllTypes;  // empty: the schema `false`
  bool type_only = true;      // no rules other than `types`
  std::uint32_t resource = 0;
  // Indexes in `numbers`, `strings`, `arrays` and `objects` of the Table.
  std::uint32_t number_rules = kNone;
  std::uint32_t string_rules = kNone;
  std::uint32_t array_rules = kNone;
  std::uint32_t object_rules = kNone;
  std::uint32_t first_allowed_values = 0;  // a range [first, last) of Table::allowed_values
  std::uint32_t last_allowed_values = 0;
  std::uint32_t first_applicator = 0;  // a range [first, last) of Table::applicators
  std::uint32_t last_applicator = 0;
  NodeId unevaluated_items = kNone;
  NodeId unevaluated_properties = kNone;
};

struct Table {
  SchemaOptions options;
  std::vector<std::unique_ptr<Document>> documents;  // the first is the schema itself
  std::deque<std::string> decoded;  // strings spelled with escapes; string_views point into them
  std::vector<Location> locations;  // by NodeId, like `nodes`
  std::vector<Node> nodes;
  std::vector<NumberRules> numbers;
  std::vector<StringRules> strings;
  std::vector<ArrayRules> arrays;
  std::vector<ObjectRules> objects;
  std::vector<AllowedValues> allowed_values;
  std::vector<Applicator> applicators;
  std::vector<Regex> patterns;
  // By dynamic name: the resources with that $dynamicAnchor and the node it is on, sorted by resource.
  std::vector<std::vector<std::pair<std::uint32_t, NodeId>>> dynamic_anchors;
};

// Finds subschemas that apply each other to the same value in a cycle, so that a validation would never end.
// Returns one node of such a cycle, or kNone.
NodeId find_reference_cycle(const Table& table);

}  // namespace fairlead::json::schema
