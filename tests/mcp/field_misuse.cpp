// Metadata that the type of its member does not support: each MISUSE must fail to compile with the message
// that its test in CMakeLists.txt expects.
#include "fairlead/mcp/field.hpp"

struct Misused {
  int number;
  std::string text;
  std::vector<int> list;
};
BOOST_DESCRIBE_STRUCT(Misused, (), (number, text, list))

auto describe_fields(const Misused*) {
  using fairlead::mcp::field;
#if MISUSE == 1
  return fairlead::mcp::fields(field(&Misused::number).pattern("x"));
#elif MISUSE == 2
  return fairlead::mcp::fields(field(&Misused::text).minimum(1));
#elif MISUSE == 3
  return fairlead::mcp::fields(field(&Misused::number).maximum(1.5));
#elif MISUSE == 4
  return fairlead::mcp::fields(field(&Misused::text).max_items(1));
#elif MISUSE == 5
  return fairlead::mcp::fields(field(&Misused::list).label(1, "one"));
#endif
}
