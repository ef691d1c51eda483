// Analyzer: turns text into the stems that are indexed and searched for. Private to the library.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "fairlead/base/string_map.hpp"
#include "search/identifiers.hpp"
#include "search/stemmer.hpp"

namespace fairlead::search {

struct QueryStem {
  std::string stem;
  bool joined = false;  // two adjacent words written as one
};

enum class StemKind {
  word,    // also a character of a script that does not separate words
  filler,  // see filler_words()
  pair     // two adjacent characters of such a script, which are also visited one by one
};

class Analyzer {
 public:
  using VisitStem = std::function<void(std::string_view stem, StemKind kind)>;

  static Result<Analyzer> create(sqlite3* database);

  // Calls visit for each stem of a document's text.
  void each_document_stem(std::string_view text, const VisitStem& visit) const;
  // Calls visit for each filler of a query.
  void each_filler(std::string_view text, const Stemmer::Visit& visit) const;
  // Returns the stems of a query in order, with duplicates, without fillers. Adjacent words are also searched
  // for as one word
  // ("file system" finds "filesystem").
  std::vector<QueryStem> query_stems(std::string_view text) const;

  bool is_filler(std::string_view stem) const { return fillers_.find(stem) != fillers_.end(); }
  bool is_weak(std::string_view stem) const { return weak_.find(stem) != weak_.end(); }
  // Returns the stems of the synonyms of the word with this stem.
  const std::vector<std::string>& synonyms(std::string_view stem) const;

 private:
  using StemSet = std::unordered_set<std::string, StringHash, std::equal_to<>>;

  explicit Analyzer(Stemmer stemmer) : stemmer_(std::move(stemmer)) {}
  void load_word_lists();
  std::vector<std::string> stems(std::string_view text) const;

  Stemmer stemmer_;
  StemSet fillers_;
  StemSet weak_;
  StringMap<std::vector<std::string>> synonyms_;
};

}  // namespace fairlead::search
