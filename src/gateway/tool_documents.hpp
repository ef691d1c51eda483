// ToolDocuments: numbers the tools of the lists that catalogues refer to, as documents of a
// search::ToolIndex. Private to the layer.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "gateway/catalogue.hpp"
#include "gateway/server_entry.hpp"
#include "search/tool_index.hpp"

namespace fairlead::gateway {

class ToolDocuments {
 public:
  // The limit max_indexed_tools: lists beyond it get no documents, so that their tools cannot be found.
  static constexpr std::size_t kMaxIndexedTools = 500'000;

  using Numbers = std::vector<search::DocumentNumber>;

  explicit ToolDocuments(std::size_t max_tools = kMaxIndexedTools) noexcept : max_tools_(max_tools) {}
  std::size_t max_tools() const noexcept { return max_tools_; }

  // Returns whether the lists were added with this policy.
  bool has(const std::shared_ptr<const ServerLists>& lists, const ServerPolicyPtr& policy) const;
  // Returns the documents of the lists' tools, in the order of the lists; null if the lists were not added.
  const Numbers* find(const std::shared_ptr<const ServerLists>& lists) const;
  // Returns the documents to be put into the index for these lists: the ones that they had with another
  // policy, or new ones. Returns null, and does not add the lists, if max_indexed_tools is reached.
  const Numbers* add(const std::shared_ptr<const ServerLists>& lists, ServerPolicyPtr policy);
  // Forgets the lists that no longer exist. Returns their documents, which are to be removed from the index.
  Numbers remove_unused();
  // REQUIRES: `number` is a document of lists that exist.
  const CatalogueEntry& tool(search::DocumentNumber number) const;

 private:
  struct IndexedLists {
    std::weak_ptr<const ServerLists> lists;
    ServerPolicyPtr policy;  // whose texts are indexed with the tools
    Numbers numbers;
  };
  struct Position {
    const ServerLists* lists = nullptr;
    std::uint32_t tool = 0;  // index in the list
  };

  bool has_room_for(std::size_t count) const noexcept {
    return positions_.size() - free_.size() + count <= max_tools_;
  }
  Numbers allocate(const ServerLists& lists);

  std::size_t max_tools_;
  std::unordered_map<const ServerLists*, IndexedLists> indexed_;
  std::vector<Position> positions_;  // by document
  Numbers free_;
  Numbers unused_;  // of lists that no longer exist
};

// Returns the text that is searched for a tool.
search::ToolText tool_text(const CatalogueEntry& tool, const ServerPolicy& policy);

}  // namespace fairlead::gateway
