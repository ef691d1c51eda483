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
constexpr int kMaxJsonLevels = 2;  // JSON text as a string of JSON text

// Sorted, and overlapping ones as one.
std::vector<Range> joined_ranges(std::vector<Range> ranges) {
  std::ranges::sort(ranges, {}, [](const Range& range) { return std::pair(range.end, range.begin); });
  std::vector<Range> all;
  for (const Range& range : ranges) add_range(all, range);
  return all;
}

using Indexes = std::span<const std::shared_ptr<const SecretIndex>>;

void add_found(std::vector<Range>& ranges, const SecretIndex& index, std::string_view text, bool truncated) {
  const SecretIndex::Found found = index.find(text);
  ranges.insert(ranges.end(), found.secrets.begin(), found.secrets.end());
  if (truncated && found.truncated > 0) ranges.push_back({text.size() - found.truncated, text.size()});
}

// Adds what is found in `view` as ranges of the original.
void add_found(std::vector<Range>& ranges, const SecretIndex& index, const DecodedText& view,
               bool truncated) {
  const SecretIndex::Found found = index.find(view.text());
  const std::size_t size = view.text().size();
  for (const Range& secret : found.secrets) {
    std::size_t end = secret.end;
    while (end < size && view.origin(end) == view.origin(end - 1)) ++end;  // several bytes of one escape
    ranges.push_back({view.origin(secret.begin), view.origin(end)});
  }
  if (truncated && found.truncated > 0)
    ranges.push_back({view.origin(size - found.truncated), view.origin(size)});
}

// Adds what is found in the text once its escapes are decoded.
void add_escaped(std::vector<Range>& ranges, Indexes indexes, std::string_view text, bool truncated) {
  const auto look_in = [&](const DecodedText& view) {
    for (const auto& index : indexes) add_found(ranges, *index, view, truncated);
  };
  DecodedText view(text);
  for (int level = 0; level < kMaxJsonLevels && view.text().contains('\\'); ++level) {
    view = view.without_json_escapes();
    look_in(view);
  }
  if (view.text().contains('%')) look_in(view.without_percent_encoding(false));
  if (view.text().contains('+')) look_in(view.without_percent_encoding(true));
}

// `text` without an escape at its end that is not complete.
std::string_view without_partial_escape(std::string_view text) {
  const std::size_t percent = text.rfind('%');
  if (percent != std::string_view::npos && text.size() - percent < 3) return text.substr(0, percent);
  const std::size_t backslash = text.rfind('\\');
  if (backslash == std::string_view::npos || text.size() - backslash >= 6) return text;
  const std::string_view escape = text.substr(backslash);
  return escape.size() == 1 || escape[1] == 'u' ? text.substr(0, backslash) : text;
}

// With `truncated`, also the beginning of a secret at the end of the text.
std::vector<Range> find_secrets(Indexes indexes, std::string_view text, bool truncated) {
  std::vector<Range> ranges;
  for (const auto& index : indexes) add_found(ranges, *index, text, truncated);
  if (text.find_first_of("\\%+") != std::string_view::npos) add_escaped(ranges, indexes, text, truncated);
  return joined_ranges(std::move(ranges));
}

std::vector<Range> find_in_excerpt(Indexes indexes, std::string_view text) {
  std::vector<Range> ranges = find_secrets(indexes, text, true);
  const std::string_view complete = without_partial_escape(text);
  if (complete.size() == text.size()) return ranges;
  for (Range range : find_secrets(indexes, complete, true)) {
    if (range.end == complete.size()) range.end = text.size();
    ranges.push_back(range);
  }
  return joined_ranges(std::move(ranges));
}

}  // namespace

Redactor::Redactor(const std::vector<std::string>& secrets) {
  add(std::make_shared<const SecretIndex>(secrets));
}

void Redactor::add(std::shared_ptr<const SecretIndex> index) {
  if (!index->empty()) indexes_.push_back(std::move(index));
}

bool Redactor::finds_secret(std::string_view text) const {
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
  std::string clean;
  std::size_t copied = 0;  // how much of `text` is in `clean`
  const std::vector<Range> secrets =
      truncated ? find_in_excerpt(indexes_, text) : find_secrets(indexes_, text, false);
  for (const Range& secret : secrets) {
    clean += text.substr(copied, secret.begin - copied);
    clean += kRedacted;
    copied = secret.end;
  }
  clean += text.substr(copied);
  return clean;
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

// Groups double in size up to kMaxGroupBytes: a secret is indexed again only a few times, however many
// follow.
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
  current_ = nullptr;
}

void SharedRedactor::release(const std::vector<std::string>& secrets) {
  const std::lock_guard lock(mutex_);
  for (const std::string& secret : secrets) {
    const auto found = uses_.find(secret);
    if (--found->second.count > 0) continue;
    found->second.group->erase(secret);
    uses_.erase(found);
    current_ = nullptr;
  }
}

std::shared_ptr<const Redactor> SharedRedactor::current() const {
  const std::lock_guard lock(mutex_);
  if (current_) return current_;
  auto made = std::make_shared<Redactor>();
  std::erase_if(groups_, [](const Group& group) { return group.secrets.empty(); });
  for (Group& group : groups_) {
    if (!group.index) {
      group.index = std::make_shared<const SecretIndex>(
          std::vector<std::string>(group.secrets.begin(), group.secrets.end()));
      group.indexed_bytes = group.bytes;
    }
    made->add(group.index);
  }
  current_ = std::move(made);
  return current_;
}

}  // namespace fairlead
