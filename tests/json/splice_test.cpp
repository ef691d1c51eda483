// Tests of Splice: everything except the edited values is preserved byte for byte (R1.3, R1.6).
#include "json/splice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fairlead/json/view.hpp"

namespace fairlead::json {
namespace {

Bytes literal(std::string_view text) {
  return Bytes::constant(text);
}

std::string together(const std::vector<Bytes>& parts) {
  std::string out;
  for (const Bytes& part : parts) out += part.view();
  return out;
}

// Returns the text after `edit(splice, view)`. Expects that it is valid, and that parts() and joined() agree.
template <class Edit>
std::string edited(std::string_view text, Edit edit) {
  const Bytes bytes = Bytes::copy_of(text);
  Splice splice(bytes);
  edit(splice, View(bytes.view()));
  const std::string out = together(splice.parts());
  EXPECT_EQ(splice.joined().view(), out);
  EXPECT_EQ(validate(out), std::nullopt) << out;
  return out;
}

TEST(SpliceTest, ReplacementByStringIsEscapedWhereNecessary) {
  const auto replaced = [](std::string_view text) {
    return edited(R"({"a":1})",
                  [&](Splice& splice, View view) { splice.replace_with_string(view["a"].text(), text); });
  };
  EXPECT_EQ(replaced("name"), R"({"a":"name"})");
  EXPECT_EQ(replaced("a\"b\\c\n\x1f"), R"({"a":"a\"b\\c\n\u001f"})");
  EXPECT_EQ(replaced("\u00fc"), "{\"a\":\"\u00fc\"}");
}

std::string without(std::string_view text, const std::vector<std::string_view>& keys) {
  return edited(text, [&](Splice& splice, View view) {
    for (const auto key : keys) splice.remove_member(view[key].text());
  });
}

TEST(SpliceTest, PartsOfEveryLengthAreCopiedWhole) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  for (std::size_t size = 0; size <= letters.size(); ++size) {
    const std::string kept = letters.substr(0, size);
    const std::string added = letters.substr(letters.size() - size);
    const std::string out = edited(R"({"a":1,"b":")" + kept + R"(","c":2})", [&](Splice& splice, View view) {
      splice.replace_with_string(view["a"].text(), added);
      splice.replace(view["c"].text(), "3");
    });
    EXPECT_EQ(out, R"({"a":")" + added + R"(","b":")" + kept + R"(","c":3})");
  }
}

TEST(SpliceTest, ReplacePreservesEveryOtherByte) {
  const auto out = edited(
      R"({ "id" : 1.0 ,"x":[9007199254740993, 1e400,-0,"\u0041"],"method":"a","z":100000000000000000000000000000})",
      [](Splice& splice, View view) {
        splice.replace(view["method"].text(), literal("\"b\"")).replace(view["id"].text(), literal("4711"));
      });
  EXPECT_EQ(
      out,
      R"({ "id" : 4711 ,"x":[9007199254740993, 1e400,-0,"\u0041"],"method":"b","z":100000000000000000000000000000})");
}

TEST(SpliceTest, SharesOriginalBytes) {
  const Bytes text = Bytes::copy_of(R"({"id":1,"params":{"large":"text"}})");
  const Bytes id = Bytes::copy_of("\"gw-17\"");
  Splice splice(text);
  splice.replace(View(text.view())["id"].text(), id);
  const auto parts = splice.parts();
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].data(), text.data());
  EXPECT_EQ(parts[1].data(), id.data());
  EXPECT_EQ(parts[2].data() + parts[2].size(), text.data() + text.size());
}

TEST(SpliceTest, OutlivesOriginalText) {
  std::vector<Bytes> parts;
  {
    const Bytes text = Bytes::copy_of(R"({"id":1,"method":"ping"})");
    parts = Splice(text).replace(View(text.view())["id"].text(), literal("2")).parts();
  }
  EXPECT_EQ(together(parts), R"({"id":2,"method":"ping"})");
}

// replace() and insert_member_text() refer to their arguments, but the parts own their bytes.
TEST(SpliceTest, PartsOutliveTextsThatEditsReferTo) {
  std::vector<Bytes> parts;
  {
    const Bytes text = Bytes::copy_of(R"({"id":1,"name":"a"})");
    const std::string id = "\"a long id of the other peer\"";
    const std::string name = "a long name of the tool";
    const View view(text.view());
    Splice splice(text);
    splice.replace(view["id"].text(), std::string_view(id)).replace_with_string(view["name"].text(), name);
    splice.insert_member_text(view.text(), "\"new\":[", id, "]");
    parts = splice.parts();
  }
  EXPECT_EQ(
      together(parts),
      R"({"id":"a long id of the other peer","name":"a long name of the tool","new":["a long id of the other peer"]})");
}

TEST(SpliceTest, InsertsTextOfMemberInPartsWithCommaWhereNecessary) {
  const auto with = [](std::string_view text) {
    return edited(text, [](Splice& splice, View view) {
      splice.insert_member_text(view.text(), "\"a\":", "1", {}).insert_member(view.text(), "b", "2");
    });
  };
  EXPECT_EQ(with("{}"), R"({"a":1,"b":2})");
  EXPECT_EQ(with(R"({"c":{} })"), R"({"c":{},"a":1,"b":2 })");
}

TEST(SpliceTest, ReturnsUneditedTextUnchanged) {
  const Bytes text = Bytes::copy_of("[1]");
  EXPECT_EQ(Splice(text).parts().size(), 1u);
  EXPECT_EQ(Splice(text).joined().data(), text.data());
}

TEST(SpliceTest, ReplacesWholeText) {
  EXPECT_EQ(edited("1", [](Splice& splice, View view) { splice.replace(view.text(), literal("[]")); }), "[]");
}

TEST(SpliceTest, RemovesMembersWithComma) {
  constexpr auto kText = R"({"a":1,"b":{"x":[]},"c":"3"})";
  EXPECT_EQ(without(kText, {"a"}), R"({"b":{"x":[]},"c":"3"})");
  EXPECT_EQ(without(kText, {"b"}), R"({"a":1,"c":"3"})");
  EXPECT_EQ(without(kText, {"c"}), R"({"a":1,"b":{"x":[]}})");
  EXPECT_EQ(without(R"({"a":1})", {"a"}), "{}");
}

TEST(SpliceTest, RemovesMembersSurroundedByWhiteSpace) {
  constexpr auto kText = "{ \"a\" : 1 ,\n \"b\" : 2 , \"c\" : 3 }";
  EXPECT_EQ(without(kText, {"a"}), "{ \"b\" : 2 , \"c\" : 3 }");
  EXPECT_EQ(without(kText, {"b"}), "{ \"a\" : 1  , \"c\" : 3 }");
  EXPECT_EQ(without(kText, {"c"}), "{ \"a\" : 1 ,\n \"b\" : 2  }");
  EXPECT_EQ(without("{ \"a\" : 1 }", {"a"}), "{  }");
}

TEST(SpliceTest, RemovesMembersWithUnusualKeys) {
  EXPECT_EQ(without(R"({"x":0,"a\"b\\":1,"y":2})", {"a\"b\\"}), R"({"x":0,"y":2})");
  EXPECT_EQ(without(R"({"\\\"":1,"y":2})", {"\\\""}), R"({"y":2})");
  EXPECT_EQ(without(R"({"":1,"y":2})", {""}), R"({"y":2})");
  EXPECT_EQ(without(R"({"y":2,"":1})", {""}), R"({"y":2})");
  EXPECT_EQ(without(R"({",\":":1,"y":"\\"})", {",\":"}), R"({"y":"\\"})");
}

TEST(SpliceTest, RemovesAnySetOfMembers) {
  const std::string text = R"({"a":1, "b":2,"c":3 ,"d":4})";
  const std::vector<std::string_view> keys = {"a", "b", "c", "d"};
  for (unsigned set = 0; set < 16; ++set) {
    for (const bool backwards : {false, true}) {
      std::vector<std::string_view> gone;
      std::string kept;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (set >> i & 1)
          gone.push_back(keys[i]);
        else
          kept += std::string(kept.empty() ? "" : ",") + "\"" + std::string(keys[i]) +
                  "\":" + std::to_string(i + 1);
      }
      if (backwards) std::reverse(gone.begin(), gone.end());
      EXPECT_EQ(minify(without(text, gone)), "{" + kept + "}");
      const auto with_more = edited(text, [&](Splice& splice, View view) {
        splice.insert_member(view.text(), "e", "5");
        for (const auto key : gone) splice.remove_member(view[key].text());
        splice.insert_member(view.text(), "f", "6");
      });
      EXPECT_EQ(minify(with_more), "{" + kept + (kept.empty() ? "" : ",") + "\"e\":5,\"f\":6}");
    }
  }
}

TEST(SpliceTest, InsertsMembersAtEnd) {
  const auto with = [](std::string_view text) {
    return edited(text, [](Splice& splice, View view) { splice.insert_member(view.text(), "k\n", "[1]"); });
  };
  EXPECT_EQ(with("{}"), R"({"k\n":[1]})");
  EXPECT_EQ(with("{ \n}"), "{\"k\\n\":[1] \n}");
  EXPECT_EQ(with(R"({"a":1})"), R"({"a":1,"k\n":[1]})");
  EXPECT_EQ(with("{\"a\":{} }"), "{\"a\":{},\"k\\n\":[1] }");
}

TEST(SpliceTest, InsertsSeveralMembersInOrder) {
  const auto out = edited("{}", [](Splice& splice, View view) {
    splice.insert_member(view.text(), "a", "1")
        .insert_member(view.text(), "b", "2")
        .insert_member(view.text(), "c", "3");
  });
  EXPECT_EQ(out, R"({"a":1,"b":2,"c":3})");
}

// The edits of the gateway for one forwarded call: a new id, another name, a mapped _meta.
TEST(SpliceTest, AppliesManyEdits) {
  const auto out = edited(
      R"({"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"fs__read","arguments":{"p":"\u002f"},"_meta":{"progressToken":7,"own":1}}})",
      [](Splice& splice, View view) {
        const View params = view["params"];
        splice.insert_member(params["_meta"].text(), "traceparent", "\"00-ab\"");
        splice.remove_member(params["_meta"]["own"].text());
        splice.replace(params["name"].text(), literal("\"read\""));
        splice.replace(view["id"].text(), literal("99"));
        splice.insert_member(params.text(), "task", "{}");
        splice.replace(params["_meta"]["progressToken"].text(), literal("\"p\""));
        splice.insert_member(view.text(), "x", "null");
      });
  EXPECT_EQ(
      out,
      R"({"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"read","arguments":{"p":"\u002f"},"_meta":{"progressToken":"p","traceparent":"00-ab"},"task":{}},"x":null})");
}

}  // namespace
}  // namespace fairlead::json
