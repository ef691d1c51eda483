// The units that most others of the gateway work with, without servers that run: lists are given by the
// tests.
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

class UnitsTest : public ::testing::Test {
 protected:
  std::shared_ptr<ServerEntry> add(const std::string& name,
                                   pool::Sharing sharing = pool::Sharing::automatic) {
    pool::ServerSpec spec;
    spec.name = name;
    spec.sharing = sharing;
    return *servers->add(spec);
  }
  // Lists of `server` with this one entry.
  static std::shared_ptr<Listed> lists_of(const std::string& server, Kind kind, const std::string& text) {
    auto listed = std::make_shared<Listed>();
    listed->of(kind).push_back(test::raw(text));
    listed->add_offer(server, kind, listed->of(kind).front(), mcp::ListLimits());
    return listed;
  }
  // The server has listed this; nothing else.
  void list(const std::shared_ptr<ServerEntry>& entry, Kind kind, const std::string& text) {
    entry->listing.attempted = true;
    catalogue->publish(*entry, lists_of(entry->name(), kind, text));
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
