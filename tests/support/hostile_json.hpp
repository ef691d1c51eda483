// JSON values that are costly to scan: many tokens per byte, in an order that the processor cannot predict.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::test {

// Returns a text of about `bytes` bytes: `open`, the pieces in random order, the piece `last`, and `close`.
inline std::string shuffled(std::string_view open, std::initializer_list<std::string_view> pieces,
                            std::string_view last, std::string_view close, std::size_t bytes) {
  std::mt19937 random(1);
  std::string text(open);
  text.reserve(bytes + 100);
  while (text.size() < bytes) text += pieces.begin()[random() % pieces.size()];
  return text.append(last).append(close);
}

// Returns values of about `bytes` bytes each.
inline std::vector<std::string> hostile_values(std::size_t bytes) {
  return {
      shuffled("[", {"[[]],"}, "1", "]", bytes),
      shuffled("[", {"1.5,"}, "1", "]", bytes),
      shuffled("{", {R"("a":1,)", R"("a\n":1,)"}, R"("b":1)", "}", bytes),
      shuffled("[", {"[],", "1,", "{},", "[[]],", R"("",)", "[1],", R"({"a":[]},)"}, "1", "]", bytes),
      shuffled("[", {"[],", "1 ,", "{ },", "[[] ],", R"("" ,)", "[\t1],"}, "1", "]", bytes),
      shuffled("[", {"1e5,", "1,", "-1,", "0,", "1.2,", "-0e1,", "true,"}, "1", "]", bytes),
      shuffled(R"([")", {R"(\n)", R"(\u1234)", R"(\\a)", "a"}, "", R"("])", bytes),
      shuffled(R"({")", {R"(\n)", R"(\u1234)", R"(\\a)", "a"}, "", R"(":1})", bytes),
      shuffled("[", {"1 \t,", "1\t ,", "   1,"}, "1", "]", bytes),
      shuffled("[", {R"("a",)", R"("\"b",)", R"("ä" ,)"}, "1", "]", bytes),
  };
}

}  // namespace fairlead::test
