// Handlers of the routes that list, read, create, change and remove rows. `Kind` describes the rows (see
// row_kinds.hpp). Private to the layer.
#pragma once

#include <memory>
#include <string>

#include "admin/call.hpp"
#include "admin/conditional.hpp"
#include "admin/page.hpp"
#include "admin/problem.hpp"
#include "admin/services.hpp"
#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"
#include "registry/rules.hpp"

namespace fairlead::admin {

// Returns the row whose id or name is `text`, if the client may do `operation` with it.
template <class Kind>
Result<typename Kind::Ptr> find_row(const Call& call, std::string_view text, registry::Operation operation) {
  const auto& table = Kind::table(call.services().state());
  typename Kind::Ptr row = table.find(text);
  if (!row && Kind::kFindByName) row = table.find_by_name(text);
  const std::string what = std::string(Kind::kNoun) + " \"" + std::string(text) + "\"";
  if (!row) return problem(codes::kNotFound, "there is no " + what);
  const registry::Decision decision = registry::decide(call.principal(), operation, *row);
  if (decision.allowed) return row;
  // Exactly as if the row did not exist.
  if (!decision.visible) return problem(codes::kNotFound, "there is no " + what);
  return problem(codes::kForbidden, decision.reason);
}

template <class Kind>
Reply row_reply(const Call& call, int status, const typename Kind::Row& row) {
  Reply reply(status, Kind::json(call.principal(), row));
  reply.headers.add("ETag", entity_tag(row.version));
  if (status == 201)
    reply.headers.add("Location", std::string(kApiPrefix) + std::string(Kind::kPath) + "/" + row.id);
  return reply;
}

// A page of a list while it is being filled.
template <class Kind>
struct RowPage {
  RowPage(const PageRequest& request, typename Kind::Filter wanted)
      : writer(request, Kind::kList), filter(std::move(wanted)), last(request.after) {}

  // Adds rows until the page is complete (returns true) or a slice of the work is done.
  bool fill(const Call& call) {
    const auto& rows = Kind::table(call.services().state()).by_id();
    for (auto it = rows.upper_bound(last); it != rows.end(); ++it) {
      const typename Kind::Row& row = *it->second;
      std::size_t bytes = 0;
      if (filter.matches(row) && registry::decide(call.principal(), registry::Operation::list, row).allowed) {
        more = !writer.has_room();
        if (more) return true;
        const json::Raw item = Kind::json(call.principal(), row);
        bytes = item.text().size();
        writer.add(row.id, item);
      }
      last = row.id;
      if (slices.due(bytes)) return false;
    }
    return true;
  }

  PageWriter writer;
  typename Kind::Filter filter;
  std::string last;  // the id of the last row that was visited
  Slices slices;
  bool more = false;
};

// A filter for one name needs no search.
template <class Kind>
json::Raw page_with_name(const Call& call, const PageRequest& request, const typename Kind::Filter& filter) {
  PageWriter writer(request, Kind::kList);
  const auto row = Kind::table(call.services().state()).find_by_name(filter.name);
  if (row && row->id > request.after && filter.matches(*row) &&
      registry::decide(call.principal(), registry::Operation::list, *row).allowed)
    writer.add(row->id, Kind::json(call.principal(), *row));
  return writer.finish(false);
}

template <class Kind>
Task<Result<Reply>> list_rows(Call& call) {
  const Result<PageRequest> request = PageRequest::parse(call.query(), Kind::kList);
  if (!request) co_return request.error();
  const Result<typename Kind::Filter> filter = Kind::Filter::parse(call.query());
  if (!filter) co_return filter.error();
  if (Kind::kFindByName && filter->has_exact_name())
    co_return Reply(200, page_with_name<Kind>(call, *request, *filter));
  RowPage<Kind> page(*request, *filter);
  while (!page.fill(call)) co_await sleep_for(call.services().loop, Slices::kPause);
  co_return Reply(200, page.writer.finish(page.more));
}

template <class Kind>
Task<Result<Reply>> get_row(Call& call) {
  const Result<typename Kind::Ptr> row = find_row<Kind>(call, call.path_value(), registry::Operation::read);
  if (!row) co_return row.error();
  co_return row_reply<Kind>(call, 200, **row);
}

template <class Kind>
Task<Result<Reply>> create_row(Call& call) {
  Task<Result<typename Kind::Ptr>> creation =
      Kind::create(*call.services().registry, call.principal_ptr(), call.body());
  const Result<typename Kind::Ptr> row = co_await creation;
  if (!row) co_return row.error();
  co_return row_reply<Kind>(call, 201, **row);
}

template <class Kind>
Task<Result<Reply>> patch_row(Call& call) {
  const Result<typename Kind::Ptr> row = find_row<Kind>(call, call.path_value(), registry::Operation::update);
  if (!row) co_return row.error();
  const Result<std::optional<std::int64_t>> version = required_version(call.headers(), (*row)->version);
  if (!version) co_return version.error();
  Task<Result<typename Kind::Ptr>> change =
      Kind::patch(*call.services().registry, call.principal_ptr(), (*row)->id, call.body(), *version);
  const Result<typename Kind::Ptr> changed = co_await change;
  if (!changed) co_return changed.error();
  co_return row_reply<Kind>(call, 200, **changed);
}

template <class Kind>
Task<Result<Reply>> remove_row(Call& call) {
  const Result<typename Kind::Ptr> row = find_row<Kind>(call, call.path_value(), registry::Operation::remove);
  if (!row) co_return row.error();
  const Result<std::optional<std::int64_t>> version = required_version(call.headers(), (*row)->version);
  if (!version) co_return version.error();
  Task<Result<void>> removal =
      Kind::remove(*call.services().registry, call.principal_ptr(), (*row)->id, *version);
  const Result<void> removed = co_await removal;
  if (!removed) co_return removed.error();
  co_return Reply(204);
}

}  // namespace fairlead::admin
