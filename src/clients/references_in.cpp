#include "clients/references_in.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/contains.hpp"
#include "base/printable.hpp"

namespace fairlead::clients {

namespace {

constexpr std::size_t kMaxShownReference = 64;

// Variables of Windows that occur in paths as %NAME%.
constexpr std::array<std::string_view, 12> kWindowsVariables = {
    "APPDATA",     "LOCALAPPDATA", "USERPROFILE", "HOMEPATH", "HOMEDRIVE", "PROGRAMFILES",
    "PROGRAMDATA", "SYSTEMROOT",   "TEMP",        "TMP",      "USERNAME",  "WINDIR"};

bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

class Translator {
 public:
  Translator(const ReferenceContext& context, std::vector<std::string>& problems)
      : context_(context), problems_(problems) {}

  std::string translate(std::string_view text) {
    while (!text.empty()) text.remove_prefix(take(text));
    return std::move(out_);
  }

 private:
  // Appends what stands for the beginning of `text`. Returns how many bytes of it that is.
  std::size_t take(std::string_view text) {
    std::size_t taken = 0;
    if (text.front() == '$') taken = take_dollar(text);
    if (text.front() == '%') taken = take_percent(text);
    if (text.front() == '{') taken = take_braces(text);
    if (taken != 0) return taken;
    out_ += text.front();
    return 1;
  }

  std::size_t take_dollar(std::string_view text) {
    const VariableSyntax& syntax = context_.syntax;
    if (text.starts_with("$$") && syntax.secret) return out_ += "$$", 2;
    if (text.starts_with("${{")) {
      const std::size_t taken = take_mustache(text);
      if (taken != 0) return taken;
    }
    if (text.starts_with("${")) return take_reference(text);
    const std::size_t name = name_length(text.substr(1));
    if (syntax.dollar && name != 0) return add_variable(text.substr(1, name)), 1 + name;
    out_ += "$$";
    return 1;
  }

  static std::size_t name_length(std::string_view text) {
    std::size_t length = 0;
    while (length < text.size() && (is_letter(text[length]) || (length != 0 && is_digit(text[length]))))
      ++length;
    return length;
  }

  std::size_t take_mustache(std::string_view text) {
    const std::size_t end = text.find("}}");
    if (end == std::string_view::npos || !context_.syntax.mustache) return 0;
    const std::string_view content = trimmed(text.substr(3, end - 3));
    if (content.starts_with("secrets.")) {
      out_ += context_.secret(content.substr(8));
    } else if (content.starts_with("inputs.")) {
      out_ += context_.input(content.substr(7));
    } else {
      return 0;
    }
    return end + 2;
  }

  std::size_t take_reference(std::string_view text) {
    const std::size_t end = text.find('}');
    if (end == std::string_view::npos) return out_ += "$$", 1;
    const std::string_view content = text.substr(2, end - 2);
    if (const std::optional<std::string> reference = reference_of(content)) {
      out_ += *reference;
      return end + 1;
    }
    problems_.push_back("`" + shortened(text.substr(0, end + 1), kMaxShownReference) +
                        "` is not a reference that can be translated, and stays as it is");
    out_ += "$$";
    return 1;
  }

  std::optional<std::string> reference_of(std::string_view content) {
    const VariableSyntax& syntax = context_.syntax;
    if (content.starts_with("env:")) return syntax.env ? variable(content.substr(4)) : std::nullopt;
    if (content.starts_with("input:"))
      return syntax.inputs ? std::optional(context_.input(content.substr(6))) : std::nullopt;
    if (content.starts_with("secret:")) {
      const std::string_view name = content.substr(7);
      if (!syntax.secret || name.empty() || secret_name_of(name) != name) return std::nullopt;
      return "${" + std::string(content) + "}";
    }
    if (content.starts_with("file:")) {
      if (!syntax.file || !content.starts_with("file:/")) return std::nullopt;
      return "${" + std::string(content) + "}";
    }
    if (syntax.editor)
      if (std::optional<std::string> value = editor_value(content)) return value;
    return syntax.plain ? variable(content) : std::nullopt;
  }

  // `text` is NAME or NAME:-default.
  std::optional<std::string> variable(std::string_view text) {
    const std::size_t fallback = std::min(text.find(":-"), text.size());
    const std::string_view name = text.substr(0, fallback);
    if (!is_variable_name(name) || text.substr(fallback).contains("${")) return std::nullopt;
    if (name.starts_with("CLAUDE_PLUGIN_"))
      problems_.push_back("`" + std::string(name) +
                          "` is a variable that only Claude Code sets, for its plugins");
    if (context_.is_secret && context_.is_secret(name)) return "${secret:" + std::string(name) + "}";
    return "${env:" + std::string(text) + "}";
  }

  // A variable of an editor.
  std::optional<std::string> editor_value(std::string_view content) {
    if (content == "/" || content == "pathSeparator") return "/";
    if (content == "userHome") return "${env:HOME}";
    const bool is_folder = content == "workspaceFolder" || content.starts_with("workspaceFolder:");
    if (is_folder && !context_.project.empty()) return literal(context_.project);
    if (content == "workspaceFolderBasename" && !context_.project.empty())
      return literal(base_name(context_.project));
    if (!is_folder && content != "workspaceFolderBasename" && !content.starts_with("config:") &&
        !content.starts_with("command:"))
      return std::nullopt;
    problems_.push_back("`${" + shortened(content, kMaxShownReference) +
                        "}` is known only to the editor: a value is asked for");
    return context_.input(content);
  }

  static std::string literal(std::string_view text) {
    std::string doubled;
    for (const char c : text) doubled.append(c == '$' ? 2 : 1, c);
    return doubled;
  }

  void add_variable(std::string_view name) { out_ += variable(name).value_or("$$" + std::string(name)); }

  std::size_t take_percent(std::string_view text) {
    const std::size_t name = name_length(text.substr(1));
    if (name == 0 || name + 1 >= text.size() || text[name + 1] != '%') return 0;
    if (!context_.syntax.percent && !contains(kWindowsVariables, text.substr(1, name))) return 0;
    add_variable(text.substr(1, name));
    return name + 2;
  }

  std::size_t take_braces(std::string_view text) {
    if (!context_.syntax.braces || (!text.starts_with("{env:") && !text.starts_with("{file:"))) return 0;
    const std::size_t end = text.find('}');
    if (end == std::string_view::npos) return 0;
    const std::string_view content = text.substr(1, end - 1);
    if (content.starts_with("file:/")) {
      out_ += "${" + std::string(content) + "}";
    } else if (content.starts_with("env:") && is_variable_name(content.substr(4))) {
      add_variable(content.substr(4));
    } else {
      problems_.push_back("`{" + shortened(content, kMaxShownReference) +
                          "}` is not a reference that can be translated, and stays as it is");
      return 0;
    }
    return end + 1;
  }

  const ReferenceContext& context_;
  std::vector<std::string>& problems_;
  std::string out_;
};

}  // namespace

std::string translate_references(std::string_view text, const ReferenceContext& context,
                                 std::vector<std::string>& problems) {
  return Translator(context, problems).translate(text);
}

bool is_variable_name(std::string_view name) noexcept {
  return !name.empty() && !is_digit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c); });
}

std::string secret_name_of(std::string_view text) {
  constexpr std::size_t kMaxSecretName = 128;
  std::string name;
  for (const char c : text.substr(0, kMaxSecretName - 1))
    name += is_letter(c) || is_digit(c) || c == '-' || c == '.' ? c : '_';
  if (name.empty() || !is_letter(name.front())) name.insert(0, "_");
  return name;
}

}  // namespace fairlead::clients
