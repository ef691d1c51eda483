#include "mcp/catalogue.hpp"

#include <algorithm>

namespace fairlead::mcp {

namespace {

template <class Entry, class Write>
void write_range(json::Writer& out, const EntryTable<Entry>& table, std::size_t from, std::size_t count,
                 Write write_spec) {
  out.begin_array();
  const std::size_t end = std::min(table.entries.size(), from + count);
  for (std::size_t i = from; i < end; ++i) write_spec(table.entries[i]->spec);
  out.end_array();
}

}  // namespace

std::size_t Catalogue::size(ListKind kind) const noexcept {
  switch (kind) {
    case ListKind::tools: return tools.entries.size();
    case ListKind::resources: return resources.entries.size();
    case ListKind::templates: return templates.entries.size();
    case ListKind::prompts: return prompts.entries.size();
  }
  return 0;
}

json::Raw Catalogue::page_json(ListKind kind, Revision revision, std::size_t from, std::size_t count) const {
  const std::lock_guard lock(mutex_);
  json::Raw& cached = page_cache_[{kind, revision, from, count}];
  if (cached.absent()) cached = encode_page(kind, revision, from, count);
  return cached;
}

json::Raw Catalogue::encode_page(ListKind kind, Revision revision, std::size_t from,
                                 std::size_t count) const {
  json::Writer out;
  switch (kind) {
    case ListKind::tools:
      write_range(out, tools, from, count, [&](const ToolSpec& spec) { write(out, spec, revision); });
      break;
    case ListKind::resources:
      write_range(out, resources, from, count,
                  [&](const ResourceSpec& spec) { write(out, spec, revision, false); });
      break;
    case ListKind::templates:
      write_range(out, templates, from, count,
                  [&](const ResourceSpec& spec) { write(out, spec, revision, true); });
      break;
    case ListKind::prompts:
      write_range(out, prompts, from, count, [&](const PromptSpec& spec) { write(out, spec, revision); });
      break;
  }
  return out.finish();
}

}  // namespace fairlead::mcp
