// Measures the search for tools: recall on data sets, the time of a query, and the memory of the index.
//
//   search_bench [--json] [DATA_SET.json…]      default: the data sets of the tests
#include <malloc.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "search/data_set.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::search;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double allocated_mib() {
  return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd) / (1 << 20);
}

// Makes tools of the words of the tools in `data`, so that frequencies of words are realistic.
std::vector<Document> make_tools(const DataSet& data, std::size_t count) {
  std::vector<std::string> words;
  for (const Document& tool : data.tools) {
    std::string word;
    for (const char c : tool.text.description + " ") {
      if (c != ' ') {
        word += c;
      } else if (!word.empty()) {
        words.push_back(std::exchange(word, {}));
      }
    }
  }
  std::mt19937 random(1);
  const auto text = [&](std::size_t length) {
    std::string made;
    for (std::size_t i = 0; i < length; ++i) made += words[random() % words.size()] + " ";
    return made;
  };
  std::vector<Document> tools(count);
  for (std::size_t i = 0; i < count; ++i) {
    tools[i].number = static_cast<DocumentNumber>(i);
    tools[i].text.server = "server-" + std::to_string(i / 10);
    tools[i].text.name = words[random() % words.size()] + "_" + words[random() % words.size()];
    tools[i].text.description = text(25);
    tools[i].text.input_schema =
        R"({"properties":{"path":{"type":"string","description":"the path"},"limit":{"type":"integer"}}})";
  }
  return tools;
}

constexpr std::size_t kFewTools = 20;

struct Speed {
  double build_ms = 0;
  double memory_mib = 0;
  double median_ms = 0;
  double p99_ms = 0;
  double filtered_ms = 0;  // median with every second tool hidden
  double few_ms = 0;       // median for a client that sees kFewTools tools
};

double percentile(std::vector<double>& times, double share) {
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
}

std::vector<double> query_times(Ranking& ranking, const DataSet& data,
                                const std::shared_ptr<const DocumentSet>& visible) {
  std::vector<double> times;
  for (const LabelledQuery& labelled : data.queries) {
    Query query;
    query.text = labelled.text;
    query.visible = visible;
    const Clock::time_point begin = Clock::now();
    if (!ranking.search(query)) std::abort();
    times.push_back(ms_since(begin));
  }
  return times;
}

// Returns the median with every `step`-th of `count` tools visible.
double median_with_visible(Ranking& ranking, const DataSet& data, std::size_t count, std::size_t step) {
  const auto visible = std::make_shared<DocumentSet>();
  for (std::size_t i = 0; i < count; i += step) visible->insert(static_cast<DocumentNumber>(i));
  std::vector<double> times = query_times(ranking, data, visible);
  return percentile(times, 0.5);
}

Speed measure(const DataSet& data, std::size_t count) {
  constexpr std::size_t kBatch = 256;
  const std::vector<Document> tools = make_tools(data, count);
  malloc_trim(0);
  const double before = allocated_mib();
  const Clock::time_point begin = Clock::now();
  const std::unique_ptr<DocumentStore> store = DocumentStore::create().value();
  for (std::size_t i = 0; i < tools.size(); i += kBatch) {
    const std::span<const Document> batch(tools.data() + i, std::min(kBatch, tools.size() - i));
    if (!store->put(batch)) std::abort();
  }
  Speed speed;
  speed.build_ms = ms_since(begin);
  speed.memory_mib = allocated_mib() - before;
  Ranking ranking(*store);
  std::vector<double> times = query_times(ranking, data, nullptr);
  speed.median_ms = percentile(times, 0.5);
  speed.p99_ms = percentile(times, 0.99);
  speed.filtered_ms = median_with_visible(ranking, data, count, 2);
  speed.few_ms = median_with_visible(ranking, data, count, count / kFewTools);
  return speed;
}

// Prints text for people, or one JSON object.
class Report {
 public:
  explicit Report(bool as_json) : as_json_(as_json) {}
  ~Report() {
    if (as_json_) std::printf("%s}\n", json_.empty() ? "{" : json_.c_str());
  }
  Report(const Report&) = delete;

  void recall(const DataSet& data) {
    const double first = search::recall(data, 1);
    const double fifth = search::recall(data, 5);
    if (!as_json_) std::printf("%-18s recall@1 %.3f  @5 %.3f\n", data.name.c_str(), first, fifth);
    add("recall1_" + data.name, first);
    add("recall5_" + data.name, fifth);
  }
  void speed(std::size_t count, const Speed& speed) {
    if (!as_json_) {
      std::printf(
          "%7zu tools: built in %.1f ms, %.1f MiB; a query %.3f ms median, %.3f ms p99, %.3f ms median with "
          "every second tool hidden, %.3f ms with all but %zu hidden\n",
          count, speed.build_ms, speed.memory_mib, speed.median_ms, speed.p99_ms, speed.filtered_ms,
          speed.few_ms, kFewTools);
    }
    const std::string suffix = "_" + std::to_string(count);
    add("build_ms" + suffix, speed.build_ms);
    add("memory_mib" + suffix, speed.memory_mib);
    add("query_ms" + suffix, speed.median_ms);
    add("query_p99_ms" + suffix, speed.p99_ms);
    add("filtered_query_ms" + suffix, speed.filtered_ms);
    add("few_query_ms" + suffix, speed.few_ms);
  }

 private:
  void add(const std::string& name, double value) {
    json_ += (json_.empty() ? "{\"" : ",\"") + name + "\":" + std::to_string(value);
  }

  bool as_json_;
  std::string json_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> paths(argv + 1, argv + argc);
  const bool as_json = std::erase(paths, "--json") > 0;
  if (paths.empty()) {
    paths = {FAIRLEAD_SOURCE_DIR "/tests/search/office.json",
             FAIRLEAD_SHARED_DIR "/data/tool-search/reference-servers.json",
             FAIRLEAD_SHARED_DIR "/data/tool-search/metatool.json"};
  }
  Report report(as_json);
  std::optional<DataSet> largest;
  for (const std::string& path : paths) {
    std::optional<DataSet> data = read_data_set(path);
    if (!data) {
      std::fprintf(stderr, "%s does not exist\n", path.c_str());
      continue;
    }
    report.recall(*data);
    if (!largest || data->queries.size() > largest->queries.size()) largest = std::move(data);
  }
  if (!largest) return 1;
  for (const std::size_t count : {1'000u, 10'000u, 100'000u}) report.speed(count, measure(*largest, count));
  return 0;
}
