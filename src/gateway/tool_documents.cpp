#include "gateway/tool_documents.hpp"

#include <utility>

#include "json/members.hpp"

namespace fairlead::gateway {
namespace {

constexpr std::size_t kMaxIndexedTextBytes = search::DocumentStore::kMaxDocumentBytes;
constexpr std::size_t kMaxIndexedSchemaBytes = 256u << 10;  // parameters of a larger schema are not indexed

}  // namespace

bool ToolDocuments::has(const std::shared_ptr<const ServerLists>& lists,
                        const ServerPolicyPtr& policy) const {
  const auto found = indexed_.find(lists.get());
  return found != indexed_.end() && found->second.lists.lock() == lists && found->second.policy == policy;
}

const ToolDocuments::Numbers* ToolDocuments::find(const std::shared_ptr<const ServerLists>& lists) const {
  const auto found = indexed_.find(lists.get());
  return found != indexed_.end() && found->second.lists.lock() == lists ? &found->second.numbers : nullptr;
}

const ToolDocuments::Numbers* ToolDocuments::add(const std::shared_ptr<const ServerLists>& lists,
                                                 ServerPolicyPtr policy) {
  const auto found = indexed_.find(lists.get());
  if (found != indexed_.end() && found->second.lists.lock() == lists) {
    found->second.policy = std::move(policy);
    return &found->second.numbers;
  }
  if (!has_room_for(lists->entries(ListKind::tools).size())) return nullptr;
  IndexedLists& indexed = indexed_[lists.get()];
  // Earlier lists at the same address no longer exist.
  unused_.insert(unused_.end(), indexed.numbers.begin(), indexed.numbers.end());
  indexed = IndexedLists{lists, std::move(policy), allocate(*lists)};
  return &indexed.numbers;
}

ToolDocuments::Numbers ToolDocuments::remove_unused() {
  for (auto it = indexed_.begin(); it != indexed_.end();) {
    if (!it->second.lists.expired()) {
      ++it;
      continue;
    }
    unused_.insert(unused_.end(), it->second.numbers.begin(), it->second.numbers.end());
    it = indexed_.erase(it);
  }
  for (const search::DocumentNumber number : unused_) positions_[number] = Position();
  free_.insert(free_.end(), unused_.begin(), unused_.end());
  return std::exchange(unused_, Numbers());
}

const CatalogueEntry& ToolDocuments::tool(search::DocumentNumber number) const {
  const Position& position = positions_[number];
  return position.lists->entries(ListKind::tools)[position.tool];
}

ToolDocuments::Numbers ToolDocuments::allocate(const ServerLists& lists) {
  const std::size_t count = lists.entries(ListKind::tools).size();
  Numbers numbers;
  numbers.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (free_.empty()) {
      free_.push_back(static_cast<search::DocumentNumber>(positions_.size()));
      positions_.emplace_back();
    }
    numbers.push_back(free_.back());
    free_.pop_back();
    positions_[numbers.back()] = Position{&lists, i};
  }
  return numbers;
}

search::ToolText tool_text(const CatalogueEntry& tool, const ServerPolicy& policy) {
  const json::Members members(json::View(tool.modern_json), {"title", "description", "inputSchema"});
  search::ToolText text;
  text.server = tool.server;
  text.name = tool.name;
  text.title = members["title"].as_string().value_or("");
  text.description = members["description"].as_string().value_or("").substr(0, kMaxIndexedTextBytes);
  const std::string_view schema = members["inputSchema"].text();
  if (schema.size() <= kMaxIndexedSchemaBytes) text.input_schema = schema;
  text.domain = policy.domain;
  text.tags = policy.tags;
  text.tags.push_back(policy.title);
  return text;
}

}  // namespace fairlead::gateway
