// StoreTest: a fixture with a server table and a catalogue store. No server runs; the tests publish lists.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "gateway/catalogue_store.hpp"
#include "gateway/server_table.hpp"
#include "support/support.hpp"

namespace fairlead::gateway {

inline constexpr const char* kToolText = R"({"name":"t","inputSchema":{"type":"object"}})";

class StoreTest : public ::testing::Test {
 protected:
  std::shared_ptr<ServerEntry> add(const std::string& name,
                                   pool::Sharing sharing = pool::Sharing::automatic) {
    pool::ServerSpec spec;
    spec.name = name;
    spec.sharing = sharing;
    return *servers->add(spec);
  }
  // Returns lists of `server` with one entry of this kind, the JSON `text`.
  static std::shared_ptr<ServerLists> lists_of(const std::string& server, ListKind kind,
                                               const std::string& text) {
    auto lists = std::make_shared<ServerLists>();
    lists->raw_entries(kind).push_back(test::raw(text));
    lists->add_entry(server, kind, lists->raw_entries(kind).front(), mcp::ListLimits());
    return lists;
  }
  // Publishes shared lists of the server with one entry of this kind, the JSON `text`.
  void publish_list(const std::shared_ptr<ServerEntry>& entry, ListKind kind, const std::string& text) {
    entry->fetch_state.attempted = true;
    catalogue->publish_shared(*entry, lists_of(entry->name(), kind, text));
  }

  Loop loop;
  std::vector<std::string> logged;
  Log log{LogLevel::info, LogFormat::text, [this](std::string_view line) { logged.emplace_back(line); }};
  mcp::Server front{"front", "1"};
  std::shared_ptr<pool::Pool> pool = pool::Pool::create(loop);
  std::shared_ptr<ServerTable> servers = std::make_shared<ServerTable>(pool, true);
  std::shared_ptr<CatalogueStore> catalogue = std::make_shared<CatalogueStore>(loop, servers, front, log);
};

}  // namespace fairlead::gateway
