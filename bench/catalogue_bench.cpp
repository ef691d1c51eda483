// Measures the CPU time of the gateway's catalogue for 100 servers with 1,000 tools each: building the lists
// of all servers, a new catalogue after each server, every page in both eras, and the change of one server's
// list.
//
//   catalogue_bench [--json]
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/json/writer.hpp"
#include "gateway/catalogue_pages.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::gateway;

constexpr int kServerCount = 100;
constexpr int kToolsPerServer = 1000;

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::vector<json::Raw> make_tools() {
  std::vector<json::Raw> entries;
  for (int i = 0; i < kToolsPerServer; ++i) {
    const std::string number = std::to_string(i);
    entries.push_back(*json::Raw::parse(
        R"({"name":"search_documents_)" + number +
        R"(","description":"Finds documents by words, author and date; returns titles and places.",)"
        R"("inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"words"},)"
        R"("author":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":100}},)"
        R"("required":["query"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}})"));
  }
  return entries;
}

std::string server_name(int number) {
  return "server-" + std::to_string(number);
}

std::shared_ptr<const ServerLists> make_lists(const std::string& server,
                                              const std::vector<json::Raw>& entries) {
  auto server_lists = std::make_shared<ServerLists>();
  server_lists->raw_entries(ListKind::tools) = entries;
  for (const json::Raw& entry : entries)
    server_lists->add_entry(server, ListKind::tools, entry, mcp::ListLimits());
  return server_lists;
}

// Returns the number of entries of all pages.
std::size_t read_pages(const Catalogue& catalogue, mcp::Revision revision) {
  Cursor from;
  std::size_t count = 0;
  while (true) {
    const Page page = make_page(catalogue, from, revision);
    count += page.entries.size();
    if (page.next_cursor.empty()) return count;
    from = *Cursor::parse(ListKind::tools, json::View(json::string(page.next_cursor)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<json::Raw> entries = make_tools();
  ListsByServer lists;
  std::shared_ptr<const Catalogue> catalogue;
  const double begin = cpu_ms();
  for (int i = 0; i < kServerCount; ++i) {
    const std::string server = server_name(i);
    lists[server] = make_lists(server, entries);
    catalogue = std::make_shared<const Catalogue>(lists);
  }
  const double built = cpu_ms();
  std::size_t count = 0;
  for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision})
    count += read_pages(*catalogue, revision);
  const double listed = cpu_ms();
  lists[server_name(0)] = make_lists(server_name(0), entries);
  const double offered = cpu_ms();
  catalogue = std::make_shared<const Catalogue>(lists);
  const double changed = cpu_ms();
  if (count != 2u * kServerCount * kToolsPerServer) std::abort();
  const bool as_json = argc > 1 && std::string_view(argv[1]) == "--json";
  std::printf(as_json ? "{\"build_ms\":%.2f,\"list_ms\":%.2f,\"all_ms\":%.2f,\"change_ms\":%.3f,"
                        "\"snapshot_ms\":%.4f}\n"
                      : "100,000 tools of 100 servers: built in %.2f ms, listed twice in %.2f ms, together "
                        "%.2f ms; one server's change: %.3f ms, of that the new catalogue %.4f ms\n",
              built - begin, listed - built, listed - begin, changed - listed, changed - offered);
  return 0;
}
