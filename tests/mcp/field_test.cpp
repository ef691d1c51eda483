// Field metadata of typed tools: it becomes part of the schemas, arguments are validated against it, and its
// defaults are assigned to the argument struct.
#include "fairlead/mcp/field.hpp"

#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

enum class Unit { celsius, fahrenheit };
BOOST_DESCRIBE_ENUM(Unit, celsius, fahrenheit)

struct Place {
  std::string city;
  std::string country;
};
BOOST_DESCRIBE_STRUCT(Place, (), (city, country))
auto describe_fields(const Place*) {
  return fields(field(&Place::city).title("City").description("Where it is").min_length(2).max_length(20),
                field(&Place::country).pattern("^[A-Z]{2}$").default_value("CH").example("IT").example("FR"));
}

struct FieldArgs {
  Place place;
  int days;
  std::optional<double> share;
  Unit unit;
  std::vector<std::string> tags;
  std::vector<Place> stops;
  std::optional<Unit> other;
  std::string plain;
};
BOOST_DESCRIBE_STRUCT(FieldArgs, (), (place, days, share, unit, tags, stops, other, plain))
auto describe_fields(const FieldArgs*) {
  return fields(field(&FieldArgs::place).description("Start"),
                field(&FieldArgs::days).minimum(1).maximum(14).default_value(3),
                field(&FieldArgs::share).exclusive_minimum(0).exclusive_maximum(1.5),
                field(&FieldArgs::unit).label(Unit::celsius, "Degrees Celsius").default_value(Unit::celsius),
                field(&FieldArgs::tags).min_items(1).max_items(2).unique_items().default_value({"none"}),
                field(&FieldArgs::stops).default_value({}).description("On the way"),
                field(&FieldArgs::other).label(Unit::fahrenheit, "Old").default_value(Unit::fahrenheit));
}

struct Reading {
  double value;
};
BOOST_DESCRIBE_STRUCT(Reading, (), (value))
auto describe_fields(const Reading*) {
  return fields(field(&Reading::value).description("In degrees").minimum(-100));
}

struct FurtherReading : Reading {
  int extra;
};
BOOST_DESCRIBE_STRUCT(FurtherReading, (Reading), (extra))

class FieldTest : public ServerTest {
 public:
  void SetUp() override {
    tool(server, "go", "", [this](const FieldArgs& args) {
      got = args;
      return Reading{1};
    });
    start();
  }
  // Calls the tool. Returns an empty string if the handler ran, otherwise the text of the tool error.
  std::string call(const std::string& arguments) {
    got.reset();
    const std::string response = modern("tools/call", R"("name":"go","arguments":)" + arguments);
    const json::View result = json::View(response)["result"];
    if (got) return "";
    EXPECT_EQ(result["isError"].as_bool(), true) << response;
    return result["content"][std::size_t{0}]["text"].as_string().value_or("");
  }
  std::optional<FieldArgs> got;
};

TEST_F(FieldTest, SchemasContainMetadata) {
  const std::string tools = modern("tools/list");
  const json::View tool = json::View(tools)["result"]["tools"][std::size_t{0}];
  const std::string place =
      R"("type":"object","properties":{"city":{"type":"string","title":"City","description":"Where it is","minLength":2,"maxLength":20},)"
      R"("country":{"type":"string","pattern":"^[A-Z]{2}$","default":"CH","examples":["IT","FR"]}},"required":["city"])";
  EXPECT_EQ(
      tool["inputSchema"].text(),
      R"({"type":"object","properties":{"place":{)" + place + R"(,"description":"Start"},)" +
          R"("days":{"type":"integer","minimum":1,"maximum":14,"default":3},)"
          R"("share":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1.5},)"
          R"("unit":{"type":"string","enum":["celsius","fahrenheit"],"oneOf":[{"const":"celsius","title":"Degrees Celsius"},{"const":"fahrenheit"}],"default":"celsius"},)"
          R"("tags":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2,"uniqueItems":true,"default":["none"]},)"
          R"("stops":{"type":"array","items":{)" +
          place + R"(},"default":[],"description":"On the way"},)" +
          R"("other":{"type":"string","enum":["celsius","fahrenheit"],"oneOf":[{"const":"celsius"},{"const":"fahrenheit","title":"Old"}],"default":"fahrenheit"},)"
          R"("plain":{"type":"string"}},"required":["place","plain"]})");
  EXPECT_EQ(
      tool["outputSchema"].text(),
      R"({"type":"object","properties":{"value":{"type":"number","description":"In degrees","minimum":-100}},"required":["value"]})");
}

TEST_F(FieldTest, AbsentMembersHaveDefaultValues) {
  ASSERT_EQ(call(R"({"place":{"city":"Bern"},"plain":""})"), "");
  EXPECT_EQ(got->place.country, "CH");
  EXPECT_EQ(got->days, 3);
  EXPECT_EQ(got->share, std::nullopt);
  EXPECT_EQ(got->unit, Unit::celsius);
  EXPECT_EQ(got->tags, std::vector<std::string>{"none"});
  EXPECT_TRUE(got->stops.empty());
  EXPECT_EQ(got->other, Unit::fahrenheit);
}

TEST_F(FieldTest, PresentMembersReplaceDefaultValues) {
  ASSERT_EQ(
      call(
          R"({"place":{"city":"Rome","country":"IT"},"plain":"","days":14,"share":1,"unit":"fahrenheit","tags":["a","b"],"stops":[{"city":"Nice"}],"other":"celsius"})"),
      "");
  EXPECT_EQ(got->place.country, "IT");
  EXPECT_EQ(got->days, 14);
  EXPECT_EQ(got->share, 1);
  EXPECT_EQ(got->unit, Unit::fahrenheit);
  EXPECT_EQ(got->tags, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(got->stops.size(), 1u);
  EXPECT_EQ(got->stops[0].country, "CH");
  EXPECT_EQ(got->other, Unit::celsius);
}

TEST_F(FieldTest, ViolatedBoundsAreToolErrorsWithoutCallingHandler) {
  const auto with = [](const std::string& member) {
    return R"({"place":{"city":"Bern"},"plain":"",)" + member + "}";
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"place":{"city":"X"},"plain":""})", "/place/city"},
      {R"({"place":{"city":"Bern","country":"che"},"plain":""})", "/place/country"},
      {R"({"place":{"city":"Bern"}})", "plain"},
      {with(R"("days":0)"), "/days"},
      {with(R"("days":15)"), "/days"},
      {with(R"("share":0)"), "/share"},
      {with(R"("share":1.5)"), "/share"},
      {with(R"("unit":"kelvin")"), "/unit"},
      {with(R"("tags":[])"), "/tags"},
      {with(R"("tags":["a","b","c"])"), "/tags"},
      {with(R"("tags":["a","a"])"), "/tags"},
      {with(R"("stops":[{"city":"A"}])"), "/stops/0/city"},
      {with(R"("days":null)"), "/days"},
  };
  for (const auto& [arguments, where] : cases) {
    const std::string message = call(arguments);
    EXPECT_NE(message.find(where), std::string::npos) << arguments << " -> " << message;
  }
}

// ---- programming errors ---------------------------------------------------------------------------------

template <class F>
std::string registration_error(F registration) {
  try {
    registration();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "<registered>";
}

template <int Case>
struct Wrong {
  std::string text;
  int number;
  std::vector<int> list;
};
BOOST_DESCRIBE_STRUCT(Wrong<1>, (), (text, number, list))
BOOST_DESCRIBE_STRUCT(Wrong<2>, (), (text, number, list))
BOOST_DESCRIBE_STRUCT(Wrong<3>, (), (text, number, list))
BOOST_DESCRIBE_STRUCT(Wrong<4>, (), (text, number, list))
BOOST_DESCRIBE_STRUCT(Wrong<5>, (), (text, number))
BOOST_DESCRIBE_STRUCT(Wrong<6>, (), (text, number, list))
auto describe_fields(const Wrong<1>*) {
  return fields(field(&Wrong<1>::text).pattern("("));
}
auto describe_fields(const Wrong<2>*) {
  return fields(field(&Wrong<2>::number).minimum(1).default_value(0));
}
auto describe_fields(const Wrong<3>*) {
  return fields(field(&Wrong<3>::number).minimum(5).maximum(4));
}
auto describe_fields(const Wrong<4>*) {
  return fields(field(&Wrong<4>::text).max_length(2).example("abc"));
}
auto describe_fields(const Wrong<5>*) {
  return fields(field(&Wrong<5>::list).min_items(1));
}
auto describe_fields(const Wrong<6>*) {
  return fields(field(&Wrong<6>::number).minimum(1), field(&Wrong<6>::number).maximum(2));
}

template <int Case>
std::string registration_error_of_case() {
  return registration_error([] {
    Server server("test", "1");
    tool(server, "wrong", "", [](const Wrong<Case>&) { return std::string(); });
  });
}

TEST(FieldMetadataTest, RegistrationThrowsForContradictoryArgumentMetadata) {
  EXPECT_EQ(registration_error_of_case<1>().rfind("tool wrong: member text: ", 0), 0u)
      << registration_error_of_case<1>();
  EXPECT_EQ(registration_error_of_case<2>().rfind("tool wrong: member number: default 0 is invalid: ", 0), 0u)
      << registration_error_of_case<2>();
  EXPECT_EQ(registration_error_of_case<3>(),
            "tool wrong: member number: minimum 5 and maximum 4 exclude every value");
  EXPECT_EQ(registration_error_of_case<4>().rfind("tool wrong: member text: example \"abc\" is invalid: ", 0),
            0u)
      << registration_error_of_case<4>();
  const std::string contradiction =
      "describe_fields() names a member twice, or a member that BOOST_DESCRIBE_STRUCT does not name";
  EXPECT_EQ(registration_error_of_case<5>(), contradiction);
  EXPECT_EQ(registration_error_of_case<6>(), contradiction);
}

TEST(FieldMetadataTest, RegistrationThrowsForContradictoryResultMetadata) {
  EXPECT_NE(registration_error([] {
              Server server("test", "1");
              tool(server, "wrong", "", [](const EchoArgs&) { return Wrong<3>(); });
            }).find("member number"),
            std::string::npos);
}

TEST(FieldMetadataTest, MetadataIsInheritedFromBaseStruct) {
  EXPECT_EQ(
      typed::schema_of<FurtherReading>().text(),
      R"({"type":"object","properties":{"value":{"type":"number","description":"In degrees","minimum":-100},"extra":{"type":"integer","minimum":-2147483648,"maximum":2147483647}},"required":["value","extra"]})");
}

TEST(FieldMetadataTest, TextIsEscaped) {
  EXPECT_EQ(field(&EchoArgs::message).description("a \"quoted\"\nline").keywords().front().second,
            R"("a \"quoted\"\nline")");
}

}  // namespace
}  // namespace fairlead::mcp
