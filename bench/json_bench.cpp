// Measures how fast a message is validated and its envelope is found, compared with simdjson in the same run.
//
// The measured work is what the gateway does with each forwarded message: validate every byte of the text,
// and find the ranges of id, method and params. simdjson's on-demand API does less (it does not validate what
// it skips), its DOM API does more (it builds a tree); both are included for comparison.
//
//   json_bench [--json] [--rounds N]
#include <simdjson.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/json/scanner.hpp"

namespace {

using fairlead::json::Scanner;

struct Envelope {
  std::string_view id;
  std::string_view method;
  std::string_view params;
};

std::size_t scan_envelope(std::string_view text) {
  Scanner scanner(text);
  Envelope envelope;
  std::string_view key;
  std::string_view value;
  bool escaped = false;
  scanner.begin_object();
  while (scanner.next_member(key, escaped) && scanner.value(value)) {
    if (key == "id") envelope.id = value;
    if (key == "method") envelope.method = value;
    if (key == "params") envelope.params = value;
  }
  if (!scanner.finish()) std::abort();
  return envelope.id.size() + envelope.method.size() + envelope.params.size();
}

std::size_t on_demand_envelope(simdjson::ondemand::parser& parser, const simdjson::padded_string& text) {
  auto document = parser.iterate(text);
  simdjson::ondemand::object object;
  if (document.get_object().get(object)) std::abort();
  std::size_t sum = 0;
  for (auto field : object) {
    std::string_view key;
    if (field.unescaped_key().get(key)) std::abort();
    if (key == "id") {
      std::int64_t id = 0;
      if (field.value().get_int64().get(id)) std::abort();
      sum += static_cast<std::size_t>(id);
    } else if (key == "method") {
      std::string_view method;
      if (field.value().get_string().get(method)) std::abort();
      sum += method.size();
    } else if (key == "params") {
      simdjson::ondemand::object params;
      std::string_view raw;
      if (field.value().get_object().get(params) || params.raw_json().get(raw)) std::abort();
      sum += raw.size();
    }
  }
  return sum;
}

std::size_t dom_envelope(simdjson::dom::parser& parser, const simdjson::padded_string& text) {
  simdjson::dom::element document;
  if (parser.parse(text).get(document)) std::abort();
  std::string_view method;
  if (document["method"].get(method)) std::abort();
  return method.size();
}

std::string repeated(std::string_view unit, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += unit;
  return out;
}

std::string call(std::string_view arguments) {
  std::string out =
      R"({"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":)";
  return out.append(arguments).append("}}");
}

std::string call_with_text(const std::string& text) {
  return call("{\"message\":\"" + text + "\"}");
}

// A generator with a fixed seed, so that every run measures the same text. Numbers and lengths vary from row
// to row, so that branch predictors cannot learn them.
std::string make_rows(std::size_t bytes) {
  constexpr const char* kNames[] = {"Ann", "Bert", "Charlotte", "Dimitri", "Eve", "Fatima", "Gustav", "Hu"};
  std::uint32_t seed = 1;
  const auto random = [&seed](std::uint32_t below) {
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % below;
  };
  std::string out = "[";
  while (out.size() < bytes) {
    if (out.size() > 1) out += ',';
    out += "{\"id\":" + std::to_string(random(100000)) + ",\"name\":\"" + kNames[random(8)] +
           "\",\"age\":" + std::to_string(random(100)) + ",\"ok\":" + (random(2) != 0 ? "true" : "false") +
           ",\"x\":" + std::to_string(random(1000)) + "." + std::to_string(random(100)) + ",\"tag\":[" +
           std::to_string(random(10)) + "," + std::to_string(random(1000)) + "],\"note\":null}";
  }
  return out + "]";
}

struct Case {
  std::string name;
  std::string text;
};

std::vector<Case> cases() {
  const std::string english = "The quick brown fox jumps over the lazy dog and counts 0123456789 sheep; ";
  const std::string german = "Zwölf große Boxkämpfer jagen den süßen Eichhörnchen über die Brücke; ";
  const std::string chinese = "天地玄黄,宇宙洪荒。日月盈昃,辰宿列张。寒来暑往,秋收冬藏。";
  const std::string code = R"(  if (name == \"x\") {\n    return \"C:\\temp\\\" + name;\n  }\n)";
  const std::string nested =
      R"({"query":"quarterly revenue by region","filters":{"year":[2024,2025],"region":["emea","apac"],)"
      R"("status":{"in":["final","draft"]}},"limit":25,"offset":0,"include":["title","snippet","score"],)"
      R"("options":{"fuzzy":true,"boost":1.25,"highlight":{"pre":"<em>","post":"</em>"}}})";
  constexpr std::size_t kLarge = 64 << 10;
  return {
      {"small call", call_with_text(english + english.substr(0, 27))},
      {"nested call", call(nested)},
      {"text 64 KiB", call_with_text(repeated(english, kLarge))},
      {"text 1 MiB", call_with_text(repeated(english, 1 << 20))},
      {"rows 64 KiB", call(make_rows(kLarge))},
      {"German 64 KiB", call_with_text(repeated(german, kLarge))},
      {"Chinese 64 KiB", call_with_text(repeated(chinese, kLarge))},
      {"escapes 64 KiB", call_with_text(repeated(code, kLarge))},
  };
}

double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct CaseTimes {
  std::string name;
  std::size_t bytes;
  double scanner_ns;
  double on_demand_ns;
  double dom_ns;

  double ratio() const { return scanner_ns / on_demand_ns; }
  double gigabytes_per_second() const { return static_cast<double>(bytes) / scanner_ns; }
};

// The candidates are interleaved, so that a change in the load of the machine affects all of them.
CaseTimes measure(const Case& test_case, int rounds) {
  const simdjson::padded_string padded(test_case.text);
  simdjson::ondemand::parser on_demand;
  simdjson::dom::parser dom;
  volatile std::size_t sink = 0;
  const std::vector<std::function<std::size_t()>> work = {
      [&] { return scan_envelope(test_case.text); },
      [&] { return on_demand_envelope(on_demand, padded); },
      [&] { return dom_envelope(dom, padded); },
  };
  const std::size_t turns = std::max<std::size_t>(20, 20'000'000 / (test_case.text.size() + 400));
  std::vector<std::vector<double>> samples(work.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < work.size(); ++i) {
      const double before = cpu_ns();
      for (std::size_t turn = 0; turn < turns; ++turn) sink = sink + work[i]();
      samples[i].push_back((cpu_ns() - before) / static_cast<double>(turns));
    }
  }
  return CaseTimes{test_case.name, test_case.text.size(), median(samples[0]), median(samples[1]),
                   median(samples[2])};
}

void print_table(const std::vector<CaseTimes>& all) {
  std::printf("%-16s %9s %12s %8s %14s %8s %10s\n", "", "bytes", "scanner ns", "GB/s", "on-demand ns",
              "ratio", "dom ns");
  for (const CaseTimes& f : all) {
    std::printf("%-16s %9zu %12.1f %8.2f %14.1f %8.2f %10.1f\n", f.name.c_str(), f.bytes, f.scanner_ns,
                f.gigabytes_per_second(), f.on_demand_ns, f.ratio(), f.dom_ns);
  }
}

void print_json(const std::vector<CaseTimes>& all) {
  std::printf("{\"simdjson\":\"%s\"", simdjson::get_active_implementation()->name().c_str());
  for (const CaseTimes& f : all) {
    std::printf(
        ",\"%s\":{\"bytes\":%zu,\"scanner_ns\":%.1f,\"gb_per_s\":%.3f,\"on_demand_ns\":%.1f,"
        "\"ratio\":%.3f,\"dom_ns\":%.1f}",
        f.name.c_str(), f.bytes, f.scanner_ns, f.gigabytes_per_second(), f.on_demand_ns, f.ratio(), f.dom_ns);
  }
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  int rounds = 9;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--json") json = true;
    if (argument == "--rounds" && i + 1 < argc) rounds = std::max(1, std::atoi(argv[++i]));
  }
  std::vector<CaseTimes> all;
  for (const Case& test_case : cases()) all.push_back(measure(test_case, rounds));
  json ? print_json(all) : print_table(all);
}
