#include "clients/references_out.hpp"

#include "base/references.hpp"

namespace fairlead::clients {

namespace {

using Source = Reference::Source;

// Writes the pieces of one value.
class ClientText {
 public:
  ClientText(const VariableSyntax& syntax, std::set<std::string>& secrets)
      : syntax_(syntax), secrets_(secrets) {}

  TranslatedText translate(std::string_view value) {
    const Result<std::vector<TextPiece>> pieces = parse_references(value);
    if (!pieces) return {std::string(value), {pieces.error().message()}};
    for (const TextPiece& piece : *pieces) {
      if (const auto* plain = std::get_if<std::string>(&piece)) {
        add_literal(*plain);
      } else {
        add(std::get<Reference>(piece));
      }
    }
    return std::move(out_);
  }

 private:
  void add_literal(const std::string& text) {
    const bool looks_like_reference = (text.contains("${") && syntax_.any() && !syntax_.braces) ||
                                      (text.contains("{env:") && syntax_.braces) ||
                                      (text.contains('$') && syntax_.dollar);
    if (looks_like_reference) problem("has a literal `$` or brace, which the client takes for a reference");
    out_.text += text;
  }

  void add(const Reference& reference) {
    switch (reference.source) {
      case Source::secret: return add_secret(reference.name);
      case Source::file: return add_file(reference.name);
      default: return add_variable(reference.name, reference.fallback);
    }
  }

  void add_secret(const std::string& name) {
    if (syntax_.inputs) {
      secrets_.insert(name);
      out_.text += "${input:" + name + "}";
    } else if (syntax_.mustache) {
      secrets_.insert(name);
      out_.text += "${{ secrets." + name + " }}";
    } else {
      const std::string variable = variable_for_secret(name);
      const std::string what = "refers to the secret `" + name + "`: ";
      if (!syntax_.any()) {
        problem(what + "the client replaces nothing there, so write its value");
        out_.text += "${" + variable + "}";
        return;
      }
      problem(what + "set the variable " + variable + " to its value");
      add_variable(variable, std::nullopt);
    }
  }

  void add_file(const std::string& path) {
    if (syntax_.file) {
      out_.text += "${file:" + path + "}";
    } else if (syntax_.braces) {
      out_.text += "{file:" + path + "}";
    } else {
      problem("refers to the file " + path + ", which the client does not read: write the value instead");
      out_.text += "${file:" + path + "}";
    }
  }

  void add_variable(const std::string& name, const std::optional<std::string>& fallback) {
    if (fallback && !syntax_.any()) {
      problem("refers to the variable " + name +
              ", which the client does not replace: the default is written");
      out_.text += *fallback;
      return;
    }
    if (fallback && !syntax_.defaults)
      problem("has a default for the variable " + name + ", which the client does not support");
    if (syntax_.env) {
      out_.text += "${env:" + name + "}";
    } else if (syntax_.plain) {
      out_.text += "${" + name + (fallback && syntax_.defaults ? ":-" + *fallback : "") + "}";
    } else if (syntax_.braces) {
      out_.text += "{env:" + name + "}";
    } else if (syntax_.mustache) {
      problem("refers to the variable " + name + ", which becomes a secret of the client");
      out_.text += "${{ secrets." + name + " }}";
    } else {
      problem("refers to the variable " + name +
              ", which the client does not replace: write the value instead");
      out_.text += "${" + name + "}";
    }
  }

  void problem(std::string text) { out_.problems.push_back(std::move(text)); }

  const VariableSyntax& syntax_;
  std::set<std::string>& secrets_;
  TranslatedText out_;
};

std::string only_reference(std::string_view value, Source source) {
  const Result<std::vector<TextPiece>> pieces = parse_references(value);
  if (!pieces || pieces->size() != 1) return {};
  const auto* reference = std::get_if<Reference>(&pieces->front());
  const bool fits = reference != nullptr && reference->source == source && !reference->fallback;
  return fits ? reference->name : std::string();
}

}  // namespace

TranslatedText translate_for_client(std::string_view value, const VariableSyntax& syntax,
                                    std::set<std::string>& secrets) {
  return ClientText(syntax, secrets).translate(value);
}

std::string only_variable(std::string_view value) {
  return only_reference(value, Source::environment);
}

std::string only_secret(std::string_view value) {
  return only_reference(value, Source::secret);
}

std::string variable_for_secret(std::string_view name) {
  std::string variable;
  for (const char c : name) {
    const bool is_lower = c >= 'a' && c <= 'z';
    const bool plain = is_lower || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    variable += is_lower ? static_cast<char>(c - 32) : plain ? c : '_';
  }
  if (!variable.empty() && variable.front() >= '0' && variable.front() <= '9') variable.insert(0, "_");
  return variable;
}

}  // namespace fairlead::clients
