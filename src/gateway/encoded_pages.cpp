#include "gateway/encoded_pages.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::gateway {

namespace {

// Returns whether both refer to the same object, even if it has been destroyed.
bool same_object(const std::weak_ptr<const mcp::Catalogue>& a,
                 const std::weak_ptr<const mcp::Catalogue>& b) noexcept {
  return !a.owner_before(b) && !b.owner_before(a);
}

// Determines once that the text has no raw line break, so that transports do not search it for each response.
json::Raw with_known_lines(const json::Raw& page) {
  const bool one_line = page.is_one_line() || page.text().find_first_of("\r\n") == std::string_view::npos;
  return json::Raw::trusted(page.bytes(), one_line);
}

}  // namespace

bool EncodedPages::Key::operator==(const Key& other) const noexcept {
  return scope == other.scope && kind == other.kind && revision == other.revision && cursor == other.cursor &&
         same_object(own_tools, other.own_tools);
}

EncodedPages::~EncodedPages() {
  for (const Entry& entry : entries_) release(entry);
}

EncodedPages::Entry* EncodedPages::touch(const Key& key) {
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found == entries_.end()) return nullptr;
  std::rotate(found, found + 1, entries_.end());
  return &entries_.back();
}

json::Raw EncodedPages::find(const Key& key) {
  const Entry* const entry = touch(key);
  return entry ? entry->page : json::Raw();
}

void EncodedPages::add(Key key, const json::Raw& page, const std::shared_ptr<Budget>& budget) {
  if (Entry* const noted = touch(key)) {
    release(*noted);
    noted->page = json::Raw();
    if (!budget_) budget_ = budget;
    if (!reserve(page.text().size())) return;
    noted->page = with_known_lines(page);
    budget_->used_bytes += page.text().size();
    return;
  }
  if (entries_.size() == kMaxPages) {
    release(entries_.front());
    entries_.erase(entries_.begin());
  }
  entries_.push_back(Entry{std::move(key), json::Raw()});
}

// Evicts other pages than the most recently requested one until `bytes` more are within the budget. Returns
// false if that does not suffice.
bool EncodedPages::reserve(std::size_t bytes) {
  const auto fits = [&] {
    return budget_->used_bytes <= budget_->max_bytes && bytes <= budget_->max_bytes - budget_->used_bytes;
  };
  for (std::size_t i = 0; i + 1 < entries_.size() && !fits(); ++i) {
    release(entries_[i]);
    entries_[i].page = json::Raw();
  }
  return fits();
}

void EncodedPages::release(const Entry& entry) noexcept {
  if (!entry.page.absent()) budget_->used_bytes -= entry.page.text().size();
}

}  // namespace fairlead::gateway
