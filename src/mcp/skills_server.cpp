// A server's skills: what is asked for by skills/list, skills/get and resources/directory/read.
#include "fairlead/base/base64.hpp"
#include "fairlead/protocol/extension.hpp"
#include "fairlead/rpc/codes.hpp"
#include "mcp/dispatch.hpp"
#include "mcp/skills.hpp"

namespace fairlead::mcp {

namespace {

Task<Result<std::vector<ResourceContents>>> read_file(std::shared_ptr<const OfferedFile> file) {
  ResourceContents contents{file->spec.uri, file->spec.mime_type, {}, {}};
  if (file->is_text) {
    contents.text = file->content;
  } else {
    contents.blob = base64_encode(file->content);
  }
  co_return std::vector<ResourceContents>(1, std::move(contents));
}

Error refused(const std::string& what, const std::string& uri) {
  json::Writer data;
  data.begin_object().key("uri").string(uri).end_object();
  return Error::rpc(rpc::kInvalidParams, what + ": " + uri, data.text());
}

// The part of a list that a request asks for.
struct Page {
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t total = 0;
};

Result<Page> page_of(const FeatureCall& call, std::size_t total) {
  const Result<std::size_t> from = read_cursor(call.arg("cursor"), total);
  if (!from) return from.error();
  const std::size_t size = call.server->page_size == 0 ? total : call.server->page_size;
  return Page{*from, std::min(total, *from + size), total};
}

Answer finish(const FeatureCall& call, ResultWriter& result, const Page& page) {
  if (page.to < page.total) result.out().key("nextCursor").string(make_cursor(page.to, page.total));
  result.cache_hint(call.server->cache_hint);
  return result.finish();
}

Answer list_skills(const FeatureCall& call) {
  const auto catalogue = call.server->catalogue();
  const auto& skills = catalogue->skills.entries;
  const Result<Page> page = page_of(call, skills.size());
  if (!page) return page.error();
  ResultWriter result(*call.server, call.state->revision);
  result.out().key("skills").begin_array();
  for (std::size_t i = page->from; i < page->to; ++i) result.out().raw(skills[i]->entry);
  result.out().end_array();
  return finish(call, result, *page);
}

Answer get_skill(const FeatureCall& call, const std::string& uri) {
  const auto catalogue = call.server->catalogue();
  const OfferedSkill* skill = catalogue->skills.find(uri);
  if (!skill) return refused("Skill not found", uri);
  ResultWriter result(*call.server, call.state->revision);
  result.out().key("skill").raw(skill->entry);
  result.cache_hint(call.server->cache_hint);
  return result.finish();
}

// ---- directories ----------------------------------------------------------------------------------------

// What is in a directory, files and further directories. Nothing when it is none: there are no empty ones.
std::vector<ResourceSpec> children_of(const Catalogue& catalogue, std::string directory) {
  std::vector<ResourceSpec> children;
  if (!directory.starts_with("skill://")) return children;
  if (!directory.ends_with('/')) directory += '/';
  for (auto at = catalogue.files.lower_bound(directory);
       at != catalogue.files.end() && at->first.starts_with(directory); ++at) {
    const std::string rest = at->first.substr(directory.size());
    const std::size_t slash = rest.find('/');
    if (slash == std::string::npos) {
      children.push_back(at->second->spec);
      continue;
    }
    // Files of one directory need not stand side by side: `a-b` is between `a` and `a/b`.
    const std::string uri = directory + rest.substr(0, slash);
    const bool known = std::any_of(children.begin(), children.end(),
                                   [&](const ResourceSpec& one) { return one.uri == uri; });
    if (known) continue;
    ResourceSpec inner;
    inner.uri = uri;
    inner.name = rest.substr(0, slash);
    inner.mime_type = "inode/directory";
    children.push_back(std::move(inner));
  }
  return children;
}

Answer read_directory(const FeatureCall& call, const std::string& uri) {
  const std::vector<ResourceSpec> children = children_of(*call.server->catalogue(), uri);
  if (children.empty()) return refused("Not a directory", uri);
  const Result<Page> page = page_of(call, children.size());
  if (!page) return page.error();
  ResultWriter result(*call.server, call.state->revision);
  result.out().key("resources").begin_array();
  for (std::size_t i = page->from; i < page->to; ++i)
    write(result.out(), children[i], call.state->revision, false);
  result.out().end_array();
  return finish(call, result, *page);
}

bool may_read_directories(const ServerState& server) {
  const auto declared = server.extensions.find(kSkillsExtension);
  return declared == server.extensions.end() ||
         json::View(declared->second)["directoryRead"].as_bool().value_or(false);
}

}  // namespace

Server::ReadResource reader_of(std::shared_ptr<const OfferedFile> file) {
  return [file](const Context&, const std::string&, const Server::Variables&) { return read_file(file); };
}

Answer serve_skills(const FeatureCall& call) {
  if (call.method == "skills/list") return list_skills(call);
  const bool directory = call.method == "resources/directory/read";
  if (directory && !may_read_directories(*call.server)) return rpc::method_not_found(call.method);
  const std::optional<std::string> uri = call.arg("uri").as_string();
  if (!uri) return rpc::invalid_params("uri is not a string");
  return directory ? read_directory(call, *uri) : get_skill(call, *uri);
}

// ---- registration ---------------------------------------------------------------------------------------

Result<void> Server::add_skill(Skill skill) {
  Result<OfferedSkill> offered = offer(std::move(skill));
  if (!offered) return offered.error();
  const std::string uri = offered->uri;
  std::string taken;
  const bool added = state_->change(ListKind::resources, [&](Catalogue& c) {
    for (const auto& file : offered->files) {
      if (c.files.contains(file->spec.uri) || c.resources.find(file->spec.uri)) taken = file->spec.uri;
    }
    if (!taken.empty()) return false;
    for (const auto& file : offered->files) {
      c.files.emplace(file->spec.uri, file);
      if (file->spec.uri == uri) c.resources.add(uri, ResourceEntry{offered->listed, reader_of(file)});
    }
    return c.skills.add(uri, std::move(*offered));
  });
  if (!added) return Error(ErrorKind::validation, "there is a resource named `" + taken + "` already");
  return {};
}

bool Server::remove_skill(const std::string& uri) {
  return state_->change(ListKind::resources, [&](Catalogue& c) {
    const OfferedSkill* skill = c.skills.find(uri);
    if (!skill) return false;
    for (const auto& file : skill->files) c.files.erase(file->spec.uri);
    c.resources.remove(uri);
    return c.skills.remove(uri);
  });
}

}  // namespace fairlead::mcp
