// Two skills. One of them has another file in addition to its SKILL.md.
#include "fixture.hpp"

namespace conformance {

namespace {

constexpr std::string_view kFormsSkill = R"(---
name: form-filling
description: Fill in forms. Use when somebody hands over a form with empty fields.
license: Apache-2.0
metadata:
  author: conformance
---

# Filling in forms

Read references/FIELDS.md for the kinds of fields, then fill them in one by one.
)";

constexpr std::string_view kFields = R"(# Kinds of fields

- text: anything
- number: digits only
)";

constexpr std::string_view kGreetingSkill = R"(---
name: greeting
description: Greet people the way they like it.
---

Say hello, and mean it.
)";

mcp::SkillFile file(std::string path, std::string_view content) {
  return mcp::SkillFile{std::move(path), std::string(content)};
}

}  // namespace

void add_skills(mcp::Server& server) {
  mcp::Skill forms;
  forms.path = "office/form-filling";
  forms.files.push_back(file("SKILL.md", kFormsSkill));
  forms.files.push_back(file("references/FIELDS.md", kFields));
  require_success(server.add_skill(std::move(forms)));
  mcp::Skill greeting;
  greeting.files.push_back(file("SKILL.md", kGreetingSkill));
  require_success(server.add_skill(std::move(greeting)));
}

}  // namespace conformance
