#include "admin/published_routes.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "admin/query.hpp"
#include "base/rfc3339.hpp"
#include "base/uri.hpp"
#include "fairlead/base/base64.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::admin {

namespace {

constexpr std::size_t kDefaultPublishedItems = 30;
constexpr std::size_t kMaxPublishedPageItems = 100;
constexpr std::size_t kMaxPublishedPageBytes = 4u << 20;
constexpr std::size_t kMaxRememberedNetworks = 10'000;
constexpr std::string_view kOfficialKey = "io.modelcontextprotocol.registry/official";

// What a list is about.
struct ListRequest {
  std::size_t limit = kDefaultPublishedItems;
  std::string after_name;  // of the last item of the previous page; empty: the first page
  std::string after_version;
  std::string search;
  std::optional<registry::Time> updated_since;
  std::string version;  // empty: all; "latest"
};

Error request_error(std::string message) {
  return Error(ErrorKind::validation, std::move(message));
}

Result<std::size_t> read_limit(const std::string& text) {
  std::size_t limit = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (failure != std::errc() || end != text.data() + text.size() || limit == 0)
    return request_error("`limit` is not a positive number");
  return std::min(limit, kMaxPublishedPageItems);
}

Result<void> read_cursor(ListRequest& request, const std::string& cursor) {
  const std::optional<std::string> decoded = base64url_decode(cursor);
  const std::size_t line = decoded ? decoded->find('\n') : std::string::npos;
  if (line == std::string::npos || line == 0) return request_error("`cursor` is not one of this registry");
  request.after_name = decoded->substr(0, line);
  request.after_version = decoded->substr(line + 1);
  return {};
}

Result<ListRequest> read_list_request(const Query& query) {
  ListRequest request;
  const auto text = [&](std::string_view name) {
    const std::string* const value = query.find(name);
    return value ? *value : std::string();
  };
  if (const std::string limit = text("limit"); !limit.empty()) {
    const Result<std::size_t> read = read_limit(limit);
    if (!read) return read.error();
    request.limit = *read;
  }
  if (const std::string cursor = text("cursor"); !cursor.empty()) {
    if (const Result<void> read = read_cursor(request, cursor); !read) return read.error();
  }
  if (const std::string since = text("updated_since"); !since.empty()) {
    request.updated_since = parse_rfc3339(since);
    if (!request.updated_since)
      return request_error("`updated_since` is not a time such as 2026-07-28T10:00:00Z");
  }
  request.search = text("search");
  std::ranges::transform(request.search, request.search.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c | 32) : c; });
  request.version = text("version");
  return request;
}

void write_entry(json::Writer& out, const PublishedServer& server, bool is_latest) {
  out.begin_object().key("server").raw(server.document).key("_meta").begin_object().key(kOfficialKey);
  out.begin_object().key("status").string("active");
  out.key("publishedAt").string(format_rfc3339(server.published_at));
  out.key("updatedAt").string(format_rfc3339(server.updated_at));
  out.key("isLatest").boolean(is_latest).end_object().end_object().end_object();
}

json::Raw end_list(json::Writer& out, std::size_t count, const std::string& next_cursor) {
  out.end_array().key("metadata").begin_object();
  if (!next_cursor.empty()) out.key("nextCursor").string(next_cursor);
  out.key("count").unsigned_integer(count).end_object().end_object();
  return out.finish();
}

bool is_selected(const ListRequest& request, const PublishedServer& server, bool is_latest) {
  if (!request.search.empty() && !server.search_text.contains(request.search)) return false;
  if (request.updated_since && server.updated_at < *request.updated_since) return false;
  if (request.version.empty()) return true;
  return request.version == "latest" ? is_latest : request.version == server.version;
}

// A page of all servers, by name; the versions of a server from the newest to the oldest.
class PageOfServers {
 public:
  explicit PageOfServers(const ListRequest& request) : request_(request) {
    out_.begin_object().key("servers").begin_array();
  }

  json::Raw write(const PublishedServers::Map& servers) {
    for (auto at = servers.lower_bound(request_.after_name); at != servers.end() && !full_; ++at)
      write_versions(at->first, at->second);
    return end_list(out_, count_, full_ ? last_ : std::string());
  }

 private:
  void write_versions(const std::string& name, const PublishedVersions& versions) {
    for (auto at = versions.rbegin(); at != versions.rend() && !full_; ++at) {
      const bool is_latest = at == versions.rbegin();
      const bool is_before =
          name == request_.after_name && !NewerVersion()(at->first, request_.after_version);
      if (is_before || !is_selected(request_, at->second, is_latest)) continue;
      full_ = count_ == request_.limit || out_.text().size() >= kMaxPublishedPageBytes;
      if (full_) return;
      write_entry(out_, at->second, is_latest);
      last_ = base64url_encode(name + "\n" + at->first);
      ++count_;
    }
  }

  const ListRequest& request_;
  json::Writer out_;
  std::string last_;  // the cursor behind the last item
  std::size_t count_ = 0;
  bool full_ = false;
};

json::Raw versions_of(const PublishedVersions& versions) {
  json::Writer out;
  std::size_t count = 0;
  out.begin_object().key("servers").begin_array();
  for (auto at = versions.rbegin(); at != versions.rend() && count < kMaxPublishedPageItems; ++at, ++count)
    write_entry(out, at->second, at == versions.rbegin());
  return end_list(out, count, {});
}

http::Response json_response(const json::Raw& body) {
  http::Response response(200);
  response.headers.add("Content-Type", "application/json");
  response.body.push_back(body.bytes());
  return response;
}

// The segments behind "/v0.1/servers", decoded: nothing, or name, "versions", and optionally a version. The
// slash in a name may be encoded or not. nullopt if the path has another form.
struct ServerPath {
  std::string name;
  std::string version;
};
std::optional<ServerPath> parse_server_path(std::string_view path) {
  std::vector<std::string> segments;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    std::optional<std::string> segment = decode_segment(path.substr(0, end));
    if (!segment || segments.size() == 4) return std::nullopt;
    segments.push_back(std::move(*segment));
    path.remove_prefix(end);
  }
  while (!segments.empty() && segments.back().empty()) segments.pop_back();
  if (segments.empty()) return ServerPath();
  if (segments.size() > 1 && !segments[0].contains('/') && segments[1] != "versions") {
    segments[1] = segments[0] + "/" + segments[1];
    segments.erase(segments.begin());
  }
  if (segments.size() < 2 || segments.size() > 3 || segments[1] != "versions") return std::nullopt;
  return ServerPath{segments[0], segments.size() == 3 ? segments[2] : std::string()};
}

http::Response version_response(const PublishedVersions& versions, const std::string& version) {
  const auto found = version == "latest" ? std::prev(versions.end()) : versions.find(version);
  if (found == versions.end()) return published_error(404, "Server version not found");
  json::Writer out;
  write_entry(out, found->second, std::next(found) == versions.end());
  return json_response(out.finish());
}

}  // namespace

bool is_published_path(std::string_view path) noexcept {
  return path.starts_with(kPublishedPrefix) &&
         (path.size() == kPublishedPrefix.size() || path[kPublishedPrefix.size()] == '/');
}

http::Response published_error(int status, std::string_view message) {
  json::Writer out;
  out.begin_object().key("error").string(message).end_object();
  return http::Response::json(status, out.finish().bytes());
}

void PublishedRoutes::add(const std::shared_ptr<PublishedRoutes>& self, http::Server& server) {
  const http::Handler handler = [self](std::shared_ptr<http::Exchange> exchange) {
    http::Response response = self->serve(exchange->request());
    response.headers.set("Access-Control-Allow-Origin", "*");
    response.headers.set("Access-Control-Allow-Methods", "GET, OPTIONS");
    response.headers.set("Access-Control-Allow-Headers", "Authorization, Content-Type");
    if (!response.headers.has("Cache-Control")) response.headers.set("Cache-Control", "no-cache");
    exchange->respond(std::move(response));
  };
  server.route(std::string(kPublishedPrefix), handler);
  server.route(std::string(kPublishedPrefix) + "/*", handler);
}

http::Response PublishedRoutes::serve(const http::Request& request) {
  if (request.method == "OPTIONS") return http::Response(204);
  if (is_too_frequent(request)) {
    http::Response response = published_error(
        429, "more than max_published_requests (" + std::to_string(kMaxPublishedRequests) + ") in a minute");
    response.headers.set("Retry-After", "60");
    return response;
  }
  if (request.method == "POST" && request.path() == "/v0.1/publish")
    return published_error(501, "servers are published by the administrators of this registry");
  if (request.method == "GET" || request.method == "HEAD") return read(request.path(), request.query());
  http::Response response = published_error(405, "this registry can only be read");
  response.headers.set("Allow", "GET, HEAD, OPTIONS");
  return response;
}

http::Response PublishedRoutes::read(std::string_view path, std::string_view query) const {
  constexpr std::string_view kServers = "/v0.1/servers";
  const std::optional<ServerPath> parsed =
      path.starts_with(kServers) && (path.size() == kServers.size() || path[kServers.size()] == '/')
          ? parse_server_path(path.substr(kServers.size()))
          : std::nullopt;
  if (!parsed) return published_error(404, "this registry has no such path");
  if (parsed->name.empty()) {
    const Result<Query> parameters = Query::parse(query);
    if (!parameters) return published_error(400, parameters.error().message());
    const Result<ListRequest> request = read_list_request(*parameters);
    if (!request) return published_error(400, request.error().message());
    return json_response(PageOfServers(*request).write(servers_.all()));
  }
  const auto found = servers_.all().find(parsed->name);
  if (found == servers_.all().end()) return published_error(404, "Server not found");
  if (parsed->version.empty()) return json_response(versions_of(found->second));
  return version_response(found->second, parsed->version);
}

// The counts are of one minute; further networks beyond kMaxRememberedNetworks share one count.
bool PublishedRoutes::is_too_frequent(const http::Request& request) {
  const auto now = std::chrono::steady_clock::now();
  if (now - minute_ >= std::chrono::minutes(1)) {
    minute_ = now;
    requests_.clear();
  }
  std::string network = client_network(request.remote);
  if (requests_.size() >= kMaxRememberedNetworks && !requests_.contains(network)) network.clear();
  return ++requests_[network] > kMaxPublishedRequests;
}

}  // namespace fairlead::admin
