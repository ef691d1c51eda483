// Also defines Server::add_skill() and remove_skill().
#include "mcp/skills_server.hpp"

#include "fairlead/base/base64.hpp"
#include "fairlead/protocol/extension.hpp"
#include "fairlead/rpc/codes.hpp"
#include "mcp/dispatch.hpp"
#include "mcp/skills.hpp"

namespace fairlead::mcp {

namespace {

Task<Result<std::vector<ResourceContents>>> read_skill_file(std::shared_ptr<const RegisteredSkillFile> file) {
  ResourceContents contents{file->spec.uri, file->spec.mime_type, {}, {}};
  if (file->is_text) {
    contents.text = file->content;
  } else {
    contents.blob = base64_encode(file->content);
  }
  co_return std::vector<ResourceContents>(1, std::move(contents));
}

Error uri_error(const std::string& problem, const std::string& uri) {
  json::Writer data;
  data.begin_object().key("uri").string(uri).end_object();
  return Error::rpc(rpc::kInvalidParams, problem + ": " + uri, data.text());
}

// The page of a list that a request selects with its cursor: the entries [from, to) of `total`.
struct Page {
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t total = 0;
};

Result<Page> requested_page(const FeatureRequest& request, std::size_t total) {
  const Result<std::size_t> from = read_list_cursor(request.find_param("cursor"), total);
  if (!from) return from.error();
  const std::size_t size = request.server->page_size == 0 ? total : request.server->page_size;
  return Page{*from, std::min(total, *from + size), total};
}

// Adds the cursor of the next page and the cache hint.
Answer finish_page(const FeatureRequest& request, ResultWriter& result, const Page& page) {
  if (page.to < page.total) result.out().key("nextCursor").string(make_list_cursor(page.to, page.total));
  result.write_cache_hint(request.server->cache_hint);
  return result.finish();
}

Answer handle_list_skills(const FeatureRequest& request) {
  const auto catalogue = request.server->catalogue();
  const auto& skills = catalogue->skills.entries;
  const Result<Page> page = requested_page(request, skills.size());
  if (!page) return page.error();
  ResultWriter result(*request.server, request.state->revision);
  result.out().key("skills").begin_array();
  for (std::size_t i = page->from; i < page->to; ++i) result.out().raw(skills[i]->entry_json);
  result.out().end_array();
  return finish_page(request, result, *page);
}

Answer handle_get_skill(const FeatureRequest& request, const std::string& uri) {
  const auto catalogue = request.server->catalogue();
  const RegisteredSkill* skill = catalogue->skills.find(uri);
  if (!skill) return uri_error("Skill not found", uri);
  ResultWriter result(*request.server, request.state->revision);
  result.out().key("skill").raw(skill->entry_json);
  result.write_cache_hint(request.server->cache_hint);
  return result.finish();
}

// ---- directories ----------------------------------------------------------------------------------------

// Returns the files and directories in a directory; empty if the directory does not exist. Directories are
// not stored: a directory exists if a skill file is below it.
std::vector<ResourceSpec> children_of(const Catalogue& catalogue, std::string directory) {
  std::vector<ResourceSpec> children;
  if (!directory.starts_with("skill://")) return children;
  if (!directory.ends_with('/')) directory += '/';
  for (auto at = catalogue.skill_files.lower_bound(directory);
       at != catalogue.skill_files.end() && at->first.starts_with(directory); ++at) {
    const std::string rest = at->first.substr(directory.size());
    const std::size_t slash = rest.find('/');
    if (slash == std::string::npos) {
      children.push_back(at->second->spec);
      continue;
    }
    // Files of one directory need not be adjacent in the map: `a-b` sorts between `a` and `a/b`.
    const std::string uri = directory + rest.substr(0, slash);
    const bool known = std::any_of(children.begin(), children.end(),
                                   [&](const ResourceSpec& child) { return child.uri == uri; });
    if (known) continue;
    ResourceSpec subdirectory;
    subdirectory.uri = uri;
    subdirectory.name = rest.substr(0, slash);
    subdirectory.mime_type = "inode/directory";
    children.push_back(std::move(subdirectory));
  }
  return children;
}

Answer handle_read_directory(const FeatureRequest& request, const std::string& uri) {
  const std::vector<ResourceSpec> children = children_of(*request.server->catalogue(), uri);
  if (children.empty()) return uri_error("Not a directory", uri);
  const Result<Page> page = requested_page(request, children.size());
  if (!page) return page.error();
  ResultWriter result(*request.server, request.state->revision);
  result.out().key("resources").begin_array();
  for (std::size_t i = page->from; i < page->to; ++i)
    write(result.out(), children[i], request.state->revision, false);
  result.out().end_array();
  return finish_page(request, result, *page);
}

// Returns whether the skills extension is declared with `directoryRead`, as it is by default.
bool declares_directory_read(const ServerState& server) {
  const auto declared = server.extensions.find(kSkillsExtension);
  return declared == server.extensions.end() ||
         json::View(declared->second)["directoryRead"].as_bool().value_or(false);
}

}  // namespace

Server::ReadResource skill_file_reader(std::shared_ptr<const RegisteredSkillFile> file) {
  return
      [file](const Context&, const std::string&, const Server::Variables&) { return read_skill_file(file); };
}

Answer serve_skill_request(const FeatureRequest& request) {
  if (request.method == "skills/list") return handle_list_skills(request);
  const bool directory = request.method == "resources/directory/read";
  if (directory && !declares_directory_read(*request.server)) return rpc::method_not_found(request.method);
  const std::optional<std::string> uri = request.find_param("uri").as_string();
  if (!uri) return rpc::invalid_params("uri is not a string");
  return directory ? handle_read_directory(request, *uri) : handle_get_skill(request, *uri);
}

// ---- registration ---------------------------------------------------------------------------------------

Result<void> Server::add_skill(Skill skill) {
  Result<RegisteredSkill> registered = make_registered_skill(std::move(skill));
  if (!registered) return registered.error();
  const std::string uri = registered->uri;
  std::string duplicate;
  const bool added = state_->edit_catalogue(ListKind::resources, [&](Catalogue& c) {
    for (const auto& file : registered->files) {
      if (c.skill_files.contains(file->spec.uri) || c.resources.find(file->spec.uri))
        duplicate = file->spec.uri;
    }
    if (!duplicate.empty()) return false;
    for (const auto& file : registered->files) {
      c.skill_files.emplace(file->spec.uri, file);
      if (file->spec.uri == uri)
        c.resources.add(uri, ResourceEntry{registered->resource, skill_file_reader(file)});
    }
    return c.skills.add(uri, std::move(*registered));
  });
  if (!added) return Error(ErrorKind::validation, "the resource `" + duplicate + "` is already registered");
  return {};
}

bool Server::remove_skill(const std::string& uri) {
  return state_->edit_catalogue(ListKind::resources, [&](Catalogue& c) {
    const RegisteredSkill* skill = c.skills.find(uri);
    if (!skill) return false;
    for (const auto& file : skill->files) c.skill_files.erase(file->spec.uri);
    c.resources.remove(uri);
    return c.skills.remove(uri);
  });
}

}  // namespace fairlead::mcp
