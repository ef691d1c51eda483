// Sources: finds every subschema of a schema, what identifies it ($id, $anchor, $dynamicAnchor), and what
// references mean. Documents that are not there are not fetched; only the metaschemas are known beforehand.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/schema/table.hpp"

namespace fairlead::json::schema {

class Sources {
 public:
  // Fills the documents and locations of `table`.
  explicit Sources(Table& table) noexcept : table_(table) {}

  // The schema itself: node 0. The text was validated.
  void add_root(std::string_view text);

  bool failed() const noexcept { return error_.has_value(); }
  Error take_error() { return *std::move(error_); }
  // The first failure is kept.
  void fail(std::uint32_t document, Index at, std::string_view what);
  void fail(Error error);

  const Tape& tape(std::uint32_t document) const { return table_.documents[document]->tape; }
  NodeId node_at(std::uint32_t document, Index at) const { return table_.documents[document]->nodes[at]; }
  SchemaDialect dialect(std::uint32_t resource) const { return resources_[resource].dialect; }

  struct Target {
    NodeId node = kNone;            // kNone after a failure
    std::string dynamic_name = {};  // of the $dynamicAnchor it was found by
  };
  // What the string at `at`, a value of $ref or $dynamicRef of a schema in `resource`, refers to. It may
  // bring further locations.
  Target resolve(std::uint32_t document, Index at, std::uint32_t resource);

  struct DynamicAnchor {
    std::string name;
    std::uint32_t resource;
    NodeId node;
  };
  const std::vector<DynamicAnchor>& dynamic_anchors() const noexcept { return dynamic_anchors_; }

 private:
  struct Resource {
    std::string uri;  // without a fragment; empty for a schema without an address
    std::uint32_t document;
    Index root;
    SchemaDialect dialect;
  };
  struct Anchor {
    Location location;
    bool dynamic;
  };

  std::uint32_t add_document(std::string_view text, SchemaDialect dialect);
  NodeId locate(std::uint32_t document, Index at, std::uint32_t resource);
  void locate_members(const Location& here);
  void locate_inside(const Location& here, Index value, Shape shape);
  void identify(Location& here, NodeId node);
  bool identify_resource(Location& here);
  void add_anchor(const Location& here, NodeId node, std::string name, Index at, bool dynamic);
  std::optional<SchemaDialect> read_dialect(const Location& here, SchemaDialect otherwise);
  std::optional<std::string> read_uri(std::uint32_t document, Index at);

  std::optional<std::uint32_t> find_resource(const std::string& uri);
  NodeId follow_pointer(std::uint32_t resource, std::string_view pointer);
  Index step_into(std::uint32_t document, Index at, const std::string& name);

  Table& table_;
  std::optional<Error> error_;
  std::vector<Resource> resources_;
  std::map<std::string, std::uint32_t, std::less<>> by_uri_;
  std::map<std::pair<std::uint32_t, std::string>, Anchor> anchors_;  // by resource and name
  std::vector<DynamicAnchor> dynamic_anchors_;
  // What the containers that pointers went through hold, so that many references cost no quadratic time.
  std::map<std::pair<std::uint32_t, Index>, std::map<std::string, Index>> children_;
};

}  // namespace fairlead::json::schema
