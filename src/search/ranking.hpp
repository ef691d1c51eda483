// Ranking: finds the documents that match a query and orders them by BM25 with synonyms. docs/decisions/0014
// has the measurements. Used by one thread at a time. Private to the library.
#pragma once

#include "search/statistics.hpp"

namespace fairlead::search {

struct Query {
  Query() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string text;                            // any bytes; only the first kMaxQueryBytes count
  std::shared_ptr<const DocumentSet> visible;  // other documents do not exist for this query; null: all
  std::size_t limit = 10;
  std::size_t offset = 0;
};

struct Hit {
  DocumentNumber number = 0;
  double score = 0;
};

struct Hits {
  std::vector<Hit> hits;  // the best first
  bool more = false;      // whether there are hits after these
};

class Ranking {
 public:
  static constexpr std::size_t kMaxQueryBytes = 4u << 10;
  // Further words of a query, the most common ones, do not count.
  static constexpr std::size_t kMaxQueryTerms = 48;
  static constexpr std::size_t kMaxPostings = 20'000;  // read for one query, unless a single word has more

  explicit Ranking(DocumentStore& store) : store_(store), statistics_(store) {}

  Result<Hits> search(const Query& query);

 private:
  struct Term {
    StemNumber stem = 0;
    double weight = 0;  // of the word in the query, times its inverse document frequency
  };

  std::vector<Term> query_terms(std::string_view text, const Statistics& statistics) const;
  bool should_score_all(const std::vector<Term>& terms, const Statistics& statistics) const;
  Result<std::vector<DocumentNumber>> candidates(const std::vector<Term>& terms, const Query& query,
                                                 const Statistics& statistics);
  double score(const EncodedDocument& document, const Statistics& statistics) const;

  DocumentStore& store_;
  StatisticsCache statistics_;
  std::vector<double> weights_;  // by stem; nonzero only for the terms of the current query
};

}  // namespace fairlead::search
