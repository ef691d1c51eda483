// Reads and evaluates data sets for the search for tools: tools, and queries with the tools that answer them.
#pragma once

#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "fairlead/json/view.hpp"
#include "search/document_store.hpp"
#include "search/ranking.hpp"

namespace fairlead::search {

struct LabelledQuery {
  std::string text;
  std::set<DocumentNumber> relevant;
};

struct DataSet {
  std::string name;
  std::vector<Document> tools;  // numbered from 0
  std::vector<LabelledQuery> queries;
};

inline std::string text_member(json::View object, std::string_view key) {
  return object[key].as_string().value_or("");
}

inline DataSet parse_data_set(const std::string& text) {
  const json::Raw raw = json::Raw::parse(text).value();
  const json::View root(raw);
  DataSet data;
  data.name = text_member(root, "name");
  StringMap<DocumentNumber> numbers;
  root["tools"].each_element([&](json::View tool) {
    Document document;
    document.number = static_cast<DocumentNumber>(data.tools.size());
    document.text.server = text_member(tool, "server");
    document.text.name = text_member(tool, "tool");
    document.text.description = text_member(tool, "description");
    document.text.input_schema = tool["schema"].text();
    numbers[text_member(tool, "id")] = document.number;
    data.tools.push_back(std::move(document));
    return true;
  });
  root["queries"].each_element([&](json::View query) {
    LabelledQuery labelled;
    labelled.text = text_member(query, "query");
    query["relevant"].each_member([&](std::string_view id, bool, json::View) {
      labelled.relevant.insert(numbers.at(json::unescape(id)));
      return true;
    });
    data.queries.push_back(std::move(labelled));
    return true;
  });
  return data;
}

// Returns nullopt if there is no such file.
inline std::optional<DataSet> read_data_set(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return parse_data_set(text.str());
}

// Returns the share of the labelled tools that are among the first `count` hits, averaged over all queries.
inline double recall(const DataSet& data, std::size_t count) {
  const std::unique_ptr<DocumentStore> store = DocumentStore::create().value();
  if (!store->put(data.tools)) return 0;
  Ranking ranking(*store);
  double sum = 0;
  for (const LabelledQuery& labelled : data.queries) {
    Query query;
    query.text = labelled.text;
    query.limit = count;
    std::size_t found = 0;
    const Hits hits = ranking.search(query).value();
    for (const Hit& hit : hits.hits) found += labelled.relevant.count(hit.number);
    sum += static_cast<double>(found) / static_cast<double>(labelled.relevant.size());
  }
  return sum / static_cast<double>(data.queries.size());
}

}  // namespace fairlead::search
