// The gateway's catalogue of 100 servers with 1,000 tools each, in processor time: offers made of all
// entries, a new catalogue after each server, every page in both eras, and the change of one server's list.
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

constexpr int kServers = 100;
constexpr int kTools = 1000;

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::vector<json::Raw> tools() {
  std::vector<json::Raw> entries;
  for (int i = 0; i < kTools; ++i) {
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

std::shared_ptr<const Listed> part_of(const std::string& server, const std::vector<json::Raw>& entries) {
  auto part = std::make_shared<Listed>();
  part->of(Kind::tools) = entries;
  for (const json::Raw& entry : entries) part->add_offer(server, Kind::tools, entry, mcp::ListLimits());
  return part;
}

// The number of entries of all pages.
std::size_t read_pages(const Catalogue& catalogue, mcp::Revision revision) {
  Cursor from;
  std::size_t count = 0;
  while (true) {
    const Page page = page_of(catalogue, from, revision);
    count += page.entries.size();
    if (page.next_cursor.empty()) return count;
    from = *Cursor::parse(Kind::tools, json::View(json::string(page.next_cursor)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<json::Raw> entries = tools();
  Lists lists;
  std::shared_ptr<const Catalogue> catalogue;
  const double begin = cpu_ms();
  for (int i = 0; i < kServers; ++i) {
    const std::string server = server_name(i);
    lists[server] = part_of(server, entries);
    catalogue = std::make_shared<const Catalogue>(lists);
  }
  const double built = cpu_ms();
  std::size_t count = 0;
  for (const mcp::Revision revision : {mcp::kNewestLegacy, mcp::kNewest})
    count += read_pages(*catalogue, revision);
  const double listed = cpu_ms();
  lists[server_name(0)] = part_of(server_name(0), entries);
  const double offered = cpu_ms();
  catalogue = std::make_shared<const Catalogue>(lists);
  const double changed = cpu_ms();
  if (count != 2u * kServers * kTools) std::abort();
  const bool as_json = argc > 1 && std::string_view(argv[1]) == "--json";
  std::printf(as_json ? "{\"build_ms\":%.2f,\"list_ms\":%.2f,\"all_ms\":%.2f,\"change_ms\":%.3f,"
                        "\"snapshot_ms\":%.4f}\n"
                      : "100,000 tools of 100 servers: built in %.2f ms, listed twice in %.2f ms, together "
                        "%.2f ms; one server's change: %.3f ms, of that the new catalogue %.4f ms\n",
              built - begin, listed - built, listed - begin, changed - listed, changed - offered);
  return 0;
}
