#include "gateway/catalogue_pages.hpp"

#include <algorithm>
#include <charconv>

#include "fairlead/base/base64.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"
#include "gateway/names.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::size_t kMaxCursorBytes = 256;

// Takes a number and the character after it off the front of `text`.
std::optional<std::size_t> take_number(std::string_view& text, char end) {
  std::size_t number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || rest == text.data() + text.size() || *rest != end) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return number;
}

// "kind.position.last.server".
std::optional<Cursor> decode_cursor(Kind kind, json::View encoded) {
  if (encoded.text().size() > kMaxCursorBytes) return std::nullopt;
  const std::optional<std::string> text = encoded.as_string();
  const std::optional<std::string> plain = text ? base64url_decode(*text) : std::nullopt;
  if (!plain) return std::nullopt;
  std::string_view rest = *plain;
  const std::optional<std::size_t> of = take_number(rest, '.');
  const std::optional<std::size_t> position = take_number(rest, '.');
  const std::optional<std::size_t> last = take_number(rest, '.');
  if (of != static_cast<std::size_t>(kind) || !position || !last || server_name_problem(rest))
    return std::nullopt;
  return Cursor{kind, std::string(rest), *position, *last};
}

std::size_t resume_position(const Listed& listed, const Cursor& from) {
  const std::deque<Offer>& offers = listed.offers_of(from.kind);
  if (from.position == 0) return 0;
  const bool unmoved =
      from.position <= offers.size() && OfferKey(offers[from.position - 1].offered).hash == from.last;
  if (unmoved) return from.position;
  const std::optional<std::size_t> moved = listed.position(from.kind, from.last);
  return moved ? *moved + 1 : from.position;
}

class PageBuilder {
 public:
  PageBuilder(const Catalogue& catalogue, Kind kind, mcp::Revision revision, const PageLimits& limits)
      : catalogue_(catalogue), kind_(kind), modern_(mcp::is_modern(revision)), limits_(limits) {}

  // False: the page is full without it.
  bool add(const Offer& offer) {
    const json::Raw& entry = modern_ ? offer.entry : offer.legacy;
    const std::size_t size = entry.text().size();
    if (seen_ == limits_.max_page_entries || (seen_ > 0 && bytes_ + size > limits_.max_page_bytes))
      return false;
    ++seen_;
    bytes_ += size;
    if (!entry.absent() && !hidden(offer)) entries_.push_back(entry);
    return true;
  }
  Page finish(std::string next_cursor) { return Page{std::move(entries_), std::move(next_cursor)}; }

 private:
  // Whether another server, earlier by name, has the same URI. Names of tools and prompts are unique.
  bool hidden(const Offer& offer) const {
    if (kind_ == Kind::tools || kind_ == Kind::prompts) return false;
    return catalogue_.find_uri(kind_, OfferKey(offer.offered)) != &offer;
  }

  const Catalogue& catalogue_;
  Kind kind_;
  bool modern_;
  const PageLimits& limits_;
  std::vector<json::Raw> entries_;
  std::size_t seen_ = 0;
  std::size_t bytes_ = 0;
};

Cursor cursor_at(const Catalogue::Part& part, Kind kind, std::size_t position) {
  const std::deque<Offer>& offers = part.listed->offers_of(kind);
  const std::size_t last = position == 0 ? 0 : OfferKey(offers[position - 1].offered).hash;
  return Cursor{kind, part.server, position, last};
}

}  // namespace

Result<Cursor> Cursor::parse(Kind kind, json::View cursor) {
  if (cursor.absent()) return Cursor{kind, {}, 0, 0};
  const std::optional<Cursor> decoded = decode_cursor(kind, cursor);
  if (decoded) return *decoded;
  return refusal_of(rpc::kInvalidParams, "Invalid cursor", failure::invalid_request);
}

std::string Cursor::text() const {
  return base64url_encode(std::to_string(static_cast<std::size_t>(kind)) + "." + std::to_string(position) +
                          "." + std::to_string(last) + "." + server);
}

Page page_of(const Catalogue& catalogue, const Cursor& from, mcp::Revision revision,
             const PageLimits& limits) {
  PageBuilder page(catalogue, from.kind, revision, limits);
  const auto parts = catalogue.parts();
  for (auto part = std::ranges::lower_bound(parts, from.server, {}, &Catalogue::Part::server);
       part != parts.end(); ++part) {
    const std::deque<Offer>& offers = part->listed->offers_of(from.kind);
    std::size_t at = part->server == from.server ? resume_position(*part->listed, from) : 0;
    for (; at < offers.size(); ++at) {
      if (!page.add(offers[at])) return page.finish(cursor_at(*part, from.kind, at).text());
    }
  }
  return page.finish({});
}

}  // namespace fairlead::gateway
