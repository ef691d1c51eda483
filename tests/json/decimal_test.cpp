// Tests of Decimal.
#include "json/decimal.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace fairlead::json {
namespace {

TEST(DecimalTest, OrdersNumbersExactly) {
  // In ascending order; the numbers on one line are equal.
  const std::vector<std::vector<std::string_view>> order = {
      {"-1e400", "-10e399"},
      {"-12345678901234567890.5"},
      {"-1.5", "-15e-1", "-1.50"},
      {"-1", "-1.0", "-100e-2"},
      {"-1e-400"},
      {"0", "-0", "0.000", "0e99999999999999999999", "-0.0e5"},
      {"1e-99999999999999999999"},
      {"1e-400", "0.1e-399"},
      {"0.1", "0.10", "1e-1", "1E-1"},
      {"0.30000000000000000001"},
      {"1", "1.0", "1e0", "10e-1", "0.001e3"},
      {"9007199254740992"},
      {"9007199254740992.5"},
      {"9007199254740993", "9007199254740993.000"},
      {"9223372036854775807"},
      {"9223372036854775808", "9.223372036854775808e18"},
      {"1e400", "10e399", "1E+400"},
      {"1e99999999999999999999"},
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = 0; j < order.size(); ++j) {
      for (const std::string_view a : order[i]) {
        for (const std::string_view b : order[j])
          EXPECT_EQ(Decimal(a) <=> Decimal(b), i <=> j) << a << " " << b;
      }
    }
  }
}

TEST(DecimalTest, RecognizesIntegersInEverySpelling) {
  for (const std::string_view number :
       {"0", "-0.0", "1", "1.0", "1.50e1", "1e400", "1200e-2", "12345678901234567890"})
    EXPECT_TRUE(Decimal(number).is_integer()) << number;
  for (const std::string_view number : {"0.5", "1e-1", "1.25e1", "1e-400", "120e-2"})
    EXPECT_FALSE(Decimal(number).is_integer()) << number;
}

TEST(DecimalTest, DividesExactly) {
  struct Case {
    std::string_view number, divisor;
    bool multiple;
  };
  for (const auto& [number, divisor, multiple] : std::vector<Case>{
           {"0", "7", true},
           {"14", "7", true},
           {"-14", "7", true},
           {"15", "7", false},
           {"0.3", "0.1", true},
           {"0.35", "0.1", false},
           {"4.35", "0.01", true},
           {"1e308", "0.123456789", false},
           {"1e308", "0.5", true},
           {"1e400", "3", false},
           {"3e400", "3", true},
           {"123456789012345678901234567890", "10", true},
           {"123456789012345678901234567891", "10", false},
           {"1e-8", "1e-8", true},
           {"1.5e-8", "1e-8", false},
           {"999999999999999999e5", "999999999999999999", true},
           {"20", "2.5e1", false},
           {"50", "2.5e1", true},
       })
    EXPECT_EQ(Decimal(number).is_multiple_of(Decimal(divisor)), multiple) << number << " " << divisor;
}

}  // namespace
}  // namespace fairlead::json
