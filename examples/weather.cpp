// An MCP server with typed tools, a resource template, a prompt and progress, on stdin and stdout or over
// HTTP.
#include <fairlead/mcp/serve.hpp>
#include <fairlead/mcp/typed.hpp>

using namespace fairlead;

struct ForecastArgs {
  std::string city;
  int days;
};
BOOST_DESCRIBE_STRUCT(ForecastArgs, (), (city, days))
static auto describe_fields(const ForecastArgs*) {
  return mcp::fields(
      mcp::field(&ForecastArgs::city).description("Name of the city").min_length(1).example("Bern"),
      mcp::field(&ForecastArgs::days)
          .description("How many days, today included")
          .minimum(1)
          .maximum(14)
          .default_value(3));
}

struct Day {
  int day;
  double celsius;
};
BOOST_DESCRIBE_STRUCT(Day, (), (day, celsius))
static auto describe_fields(const Day*) {
  return mcp::fields(mcp::field(&Day::day).description("0 is today"),
                     mcp::field(&Day::celsius).description("Highest temperature of the day"));
}

struct Forecast {
  std::string city;
  std::vector<Day> days;
};
BOOST_DESCRIBE_STRUCT(Forecast, (), (city, days))

// Not a real forecast: the same city always has the same weather.
static double temperature(const std::string& city, int day) {
  unsigned seed = static_cast<unsigned>(day) * 7;
  for (const char c : city) seed = seed * 31 + static_cast<unsigned char>(c);
  return static_cast<double>(seed % 300) / 10.0;
}

static Task<Result<std::vector<mcp::ResourceContents>>> read_station(mcp::Context, std::string uri,
                                                                     mcp::Server::Variables variables) {
  co_return std::vector<mcp::ResourceContents>(
      1, mcp::ResourceContents{uri,
                               "text/plain",
                               variables["city"] + ": " + std::to_string(temperature(variables["city"], 0)),
                               {}});
}

static Task<Result<mcp::PromptResult>> packing_list(mcp::Context, mcp::Server::Variables arguments) {
  mcp::PromptResult prompt;
  prompt.messages.push_back(
      {"user", mcp::Content::text("What should I pack for " + arguments["city"] + "?")});
  co_return prompt;
}

// weather               serves on stdin and stdout
// weather --http PORT   serves on http://localhost:PORT/mcp
int main(int argc, char** argv) {
  mcp::Server server("weather", "1.0");
  mcp::ToolAnnotations read_only;
  read_only.read_only = true;
  mcp::tool(
      server, "forecast", "The weather of the next days",
      [](const mcp::Context& context, const ForecastArgs& args) {
        Forecast forecast{args.city, {}};
        for (int day = 0; day < args.days; ++day) {
          context.report_progress(day + 1, args.days);
          forecast.days.push_back({day, temperature(args.city, day)});
        }
        return forecast;
      },
      read_only);

  mcp::ResourceSpec station;
  station.uri = "weather://{city}/now";
  station.name = "The weather now";
  const bool resource = server.add_resource_template(station, read_station).has_value();

  mcp::PromptSpec packing;
  packing.name = "packing_list";
  packing.description = "What to pack for a trip";
  packing.arguments = {{"city", "", "Where to", true}};
  const bool prompt = server.add_prompt(packing, packing_list).has_value();
  if (!resource || !prompt) return 1;
  if (argc == 3 && std::string_view(argv[1]) == "--http")
    return mcp::serve_http(server, "localhost:" + std::string(argv[2]));
  return mcp::serve_stdio(server);
}
