#include "fairlead/base/redactor.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/decoded_text.hpp"
#include "base/secret_index.hpp"

namespace fairlead {

namespace {

using Range = SecretIndex::Range;

constexpr std::string_view kRedacted = "***";
constexpr int kMaxJsonLevels = 2;  // how often JSON escapes are decoded: JSON text inside a JSON string

// Returns the ranges sorted, with overlapping ranges merged.
std::vector<Range> merged_ranges(std::vector<Range> ranges) {
  std::ranges::sort(ranges, {}, [](const Range& range) { return std::pair(range.end, range.begin); });
  std::vector<Range> merged;
  for (const Range& range : ranges) add_range(merged, range);
  return merged;
}

using Indexes = std::span<const std::shared_ptr<const SecretIndex>>;

void add_matches(std::vector<Range>& ranges, const SecretIndex& index, std::string_view text,
                 bool truncated) {
  const SecretIndex::Matches matches = index.find(text);
  ranges.insert(ranges.end(), matches.secrets.begin(), matches.secrets.end());
  if (truncated && matches.partial_bytes > 0)
    ranges.push_back({text.size() - matches.partial_bytes, text.size()});
}

// Adds the secrets found in the decoded text `view`, as ranges of the original text.
void add_matches(std::vector<Range>& ranges, const SecretIndex& index, const DecodedText& view,
                 bool truncated) {
  const SecretIndex::Matches matches = index.find(view.text());
  const std::size_t size = view.text().size();
  for (const Range& secret : matches.secrets) {
    std::size_t end = secret.end;
    while (end < size && view.origin(end) == view.origin(end - 1)) ++end;  // includes the whole escape
    ranges.push_back({view.origin(secret.begin), view.origin(end)});
  }
  if (truncated && matches.partial_bytes > 0)
    ranges.push_back({view.origin(size - matches.partial_bytes), view.origin(size)});
}

// Adds the secrets found in `text` after its escapes are decoded.
void add_escaped_matches(std::vector<Range>& ranges, Indexes indexes, std::string_view text, bool truncated) {
  const auto search = [&](const DecodedText& view) {
    for (const auto& index : indexes) add_matches(ranges, *index, view, truncated);
  };
  DecodedText view(text);
  for (int level = 0; level < kMaxJsonLevels && view.text().contains('\\'); ++level) {
    view = view.without_json_escapes();
    search(view);
  }
  if (view.text().contains('%')) search(view.without_percent_encoding(false));
  if (view.text().contains('+')) search(view.without_percent_encoding(true));
}

// Returns `text` without an incomplete escape at its end.
std::string_view without_partial_escape(std::string_view text) {
  const std::size_t percent = text.rfind('%');
  if (percent != std::string_view::npos && text.size() - percent < 3) return text.substr(0, percent);
  const std::size_t backslash = text.rfind('\\');
  if (backslash == std::string_view::npos || text.size() - backslash >= 6) return text;
  const std::string_view escape = text.substr(backslash);
  return escape.size() == 1 || escape[1] == 'u' ? text.substr(0, backslash) : text;
}

// If `truncated`, also finds a prefix of a secret at the end of the text.
std::vector<Range> find_secrets(Indexes indexes, std::string_view text, bool truncated) {
  std::vector<Range> ranges;
  for (const auto& index : indexes) add_matches(ranges, *index, text, truncated);
  if (text.find_first_of("\\%+") != std::string_view::npos)
    add_escaped_matches(ranges, indexes, text, truncated);
  return merged_ranges(std::move(ranges));
}

std::vector<Range> find_in_excerpt(Indexes indexes, std::string_view text) {
  std::vector<Range> ranges = find_secrets(indexes, text, true);
  const std::string_view complete = without_partial_escape(text);
  if (complete.size() == text.size()) return ranges;
  for (Range range : find_secrets(indexes, complete, true)) {
    if (range.end == complete.size()) range.end = text.size();
    ranges.push_back(range);
  }
  return merged_ranges(std::move(ranges));
}

}  // namespace

Redactor::Redactor(const std::vector<std::string>& secrets) {
  add(std::make_shared<const SecretIndex>(secrets));
}

void Redactor::add(std::shared_ptr<const SecretIndex> index) {
  if (!index->empty()) indexes_.push_back(std::move(index));
}

bool Redactor::contains_secret(std::string_view text) const {
  return !empty() && !find_secrets(indexes_, text, false).empty();
}

std::string Redactor::redact(std::string_view text) const {
  return redact(text, false);
}

std::string Redactor::redact_excerpt(std::string_view text) const {
  return redact(text, true);
}

std::string Redactor::redact(std::string_view text, bool truncated) const {
  if (empty()) return std::string(text);
  std::string redacted;
  std::size_t copied = 0;  // bytes of `text` that are in `redacted`
  const std::vector<Range> secrets =
      truncated ? find_in_excerpt(indexes_, text) : find_secrets(indexes_, text, false);
  for (const Range& secret : secrets) {
    redacted += text.substr(copied, secret.begin - copied);
    redacted += kRedacted;
    copied = secret.end;
  }
  redacted += text.substr(copied);
  return redacted;
}

// ---- SharedRedactor --------------------------------------------------------------------------------------

std::shared_ptr<void> SharedRedactor::add(std::vector<std::string> secrets) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> added;
  for (const std::string& secret : secrets) {
    if (++uses_[secret].count == 1) added.push_back(secret);
  }
  if (!added.empty()) add_group(std::move(added));
  return std::shared_ptr<void>(
      nullptr, [self = shared_from_this(), secrets = std::move(secrets)](void*) { self->release(secrets); });
}

// Merges groups so that they double in size up to kMaxGroupBytes. A secret is therefore re-indexed only a few
// times, however many secrets are added later.
void SharedRedactor::add_group(std::vector<std::string> secrets) {
  Group added;
  for (std::string& secret : secrets) added.insert(std::move(secret));
  while (!groups_.empty() && groups_.back().bytes <= added.bytes &&
         groups_.back().bytes + added.bytes <= kMaxGroupBytes) {
    for (const std::string& secret : groups_.back().secrets) added.insert(secret);
    groups_.pop_back();
  }
  groups_.push_back(std::move(added));
  for (const std::string& secret : groups_.back().secrets) uses_[secret].group = &groups_.back();
  snapshot_ = nullptr;
}

void SharedRedactor::release(const std::vector<std::string>& secrets) {
  const std::lock_guard lock(mutex_);
  for (const std::string& secret : secrets) {
    const auto found = uses_.find(secret);
    if (--found->second.count > 0) continue;
    found->second.group->erase(secret);
    uses_.erase(found);
    snapshot_ = nullptr;
  }
}

std::shared_ptr<const Redactor> SharedRedactor::snapshot() const {
  const std::lock_guard lock(mutex_);
  if (snapshot_) return snapshot_;
  auto redactor = std::make_shared<Redactor>();
  std::erase_if(groups_, [](const Group& group) { return group.secrets.empty(); });
  for (Group& group : groups_) {
    if (!group.index) {
      group.index = std::make_shared<const SecretIndex>(
          std::vector<std::string>(group.secrets.begin(), group.secrets.end()));
      group.indexed_bytes = group.bytes;
    }
    redactor->add(group.index);
  }
  snapshot_ = std::move(redactor);
  return snapshot_;
}

}  // namespace fairlead
