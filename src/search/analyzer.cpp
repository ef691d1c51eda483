#include "search/analyzer.hpp"

#include <utility>

#include "search/word_lists.hpp"

namespace fairlead::search {
namespace {

using CharacterRun = std::vector<std::string>;

void add_pairs(const CharacterRun& run, const Stemmer::Visit& visit) {
  for (std::size_t i = 0; i + 1 < run.size(); ++i) visit(run[i] + run[i + 1]);
}

void add_characters(const CharacterRun& run, const Stemmer::Visit& visit) {
  for (const std::string& character : run) visit(character);
}

}  // namespace

Result<Analyzer> Analyzer::create(sqlite3* database) {
  Result<Stemmer> stemmer = Stemmer::create(database);
  if (!stemmer) return stemmer.error();
  Analyzer analyzer(std::move(*stemmer));
  analyzer.load_word_lists();
  return analyzer;
}

void Analyzer::load_word_lists() {
  for (const std::string_view word : filler_words()) fillers_.merge(StemSet{stems(word).front()});
  for (const std::string_view word : weak_words()) weak_.merge(StemSet{stems(word).front()});
  for (const std::string_view group : synonym_groups()) {
    const std::vector<std::string> members = stems(group);
    for (const std::string& stem : members) {
      for (const std::string& other : members) {
        if (stem != other) synonyms_[stem].push_back(other);
      }
    }
  }
}

std::vector<std::string> Analyzer::stems(std::string_view text) const {
  std::vector<std::string> found;
  stemmer_.each_stem(text, [&found](std::string_view stem) { found.emplace_back(stem); });
  return found;
}

void Analyzer::each_document_stem(std::string_view text, const VisitStem& visit) const {
  const PreparedText prepared = prepare_text(text);
  stemmer_.each_stem(prepared.words, [this, &visit](std::string_view stem) {
    visit(stem, is_filler(stem) ? StemKind::filler : StemKind::word);
  });
  for (const CharacterRun& run : prepared.runs) {
    add_characters(run, [&visit](std::string_view character) { visit(character, StemKind::word); });
    add_pairs(run, [&visit](std::string_view pair) { visit(pair, StemKind::pair); });
  }
}

void Analyzer::each_filler(std::string_view text, const Stemmer::Visit& visit) const {
  stemmer_.each_stem(prepare_text(text).words, [this, &visit](std::string_view stem) {
    if (is_filler(stem)) visit(stem);
  });
}

std::vector<QueryStem> Analyzer::query_stems(std::string_view text) const {
  const PreparedText prepared = prepare_text(text);
  const std::vector<std::string> all = stems(prepared.words);
  std::vector<QueryStem> found;
  for (const std::string& stem : all) {
    if (!is_filler(stem)) found.push_back({stem, false});
  }
  const std::size_t words = found.size();
  for (std::size_t i = 0; i + 1 < words; ++i) found.push_back({found[i].stem + found[i + 1].stem, true});
  const Stemmer::Visit append = [&found](std::string_view stem) {
    found.push_back({std::string(stem), false});
  };
  for (const CharacterRun& run : prepared.runs)
    run.size() == 1 ? add_characters(run, append) : add_pairs(run, append);
  return found;
}

const std::vector<std::string>& Analyzer::synonyms(std::string_view stem) const {
  static const std::vector<std::string> kNone;
  const auto found = synonyms_.find(stem);
  return found == synonyms_.end() ? kNone : found->second;
}

}  // namespace fairlead::search
