// Stemmer: splits text into words and reduces each to its stem, with the tokenizers "porter" and "unicode61"
// of SQLite's FTS5: "Deleting Repositories" becomes "delet", "repositori". Private to the library.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "search/sqlite.hpp"

namespace fairlead::search {

class Stemmer {
 public:
  using Visit = std::function<void(std::string_view stem)>;

  // `database` must outlive the stemmer.
  static Result<Stemmer> create(sqlite3* database);
  Stemmer(Stemmer&& other) noexcept
      : tokenizer_(other.tokenizer_), instance_(std::exchange(other.instance_, nullptr)) {}
  Stemmer& operator=(Stemmer&&) = delete;
  ~Stemmer() {
    if (instance_) tokenizer_.xDelete(instance_);
  }

  // Calls visit(stem) for each word of `text`, which may be any bytes.
  void each_stem(std::string_view text, const Visit& visit) const;

 private:
  Stemmer(const fts5_tokenizer& tokenizer, Fts5Tokenizer* instance) noexcept
      : tokenizer_(tokenizer), instance_(instance) {}

  fts5_tokenizer tokenizer_;
  Fts5Tokenizer* instance_;
};

}  // namespace fairlead::search
