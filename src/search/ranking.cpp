#include "search/ranking.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace fairlead::search {
namespace {

// The parameters of BM25, and the weights of words in a query.
constexpr double kSaturation = 1.2;        // k1
constexpr double kLengthInfluence = 0.5;   // b
constexpr double kWeakWordWeight = 0.2;    // of "show", "find" and the like
constexpr double kSynonymWeight = 0.4;     // of a word that only means the same
constexpr double kCompletionWeight = 0.5;  // of a word that only begins with an unknown word of the query
constexpr double kNameInfluence = 0.5;     // of the share of the tool's name that the query mentions
constexpr std::size_t kMinCompletedBytes = 3;
constexpr std::size_t kMaxCompletions = 8;  // of one unknown word
constexpr std::size_t kMaxCompletedWords = 4;
constexpr std::size_t kEnoughCandidates = 200;

std::string_view truncate_utf8(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xc0) == 0x80) --max_bytes;
  return text.substr(0, max_bytes);
}

// Returns the words that begin with `prefix`, those with the most visible documents first.
std::vector<StemNumber> completions(const Vocabulary& vocabulary, const Statistics& statistics,
                                    std::string_view prefix) {
  std::vector<StemNumber> found;
  vocabulary.each_with_prefix(prefix, [&](StemNumber stem) {
    if (statistics.documents(stem) > 0) found.push_back(stem);
  });
  const std::size_t kept = std::min(kMaxCompletions, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept), found.end(),
                    [&statistics](StemNumber a, StemNumber b) {
                      return std::pair(statistics.documents(b), a) < std::pair(statistics.documents(a), b);
                    });
  found.resize(kept);
  return found;
}

// Determines the weight of each stem of a query: that of the word in the query, times its inverse document
// frequency. Stems without visible documents have none.
class QueryWeights {
 public:
  QueryWeights(const DocumentStore& store, const Statistics& statistics)
      : analyzer_(store.analyzer()), vocabulary_(store.vocabulary()), statistics_(statistics) {}

  void add_text(std::string_view text) {
    for (const QueryStem& word : analyzer_.query_stems(text)) add_word(word);
    if (weights_.empty()) analyzer_.each_filler(text, [this](std::string_view stem) { add(stem, 1); });
  }
  const std::map<StemNumber, double>& weights() const noexcept { return weights_; }

 private:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  void add_word(const QueryStem& word) {
    const double factor = factor_of(word.stem);
    const double weight = add(word.stem, factor);
    if (weight == 0 && !word.joined) complete(word.stem);
    // A rare synonym counts no more than a common word that the query has.
    const double limit = weight > 0 ? weight * kSynonymWeight : kUnlimited;
    for (const std::string& synonym : analyzer_.synonyms(word.stem))
      add(synonym, factor * factor_of(synonym) * kSynonymWeight, limit);
  }
  double factor_of(std::string_view stem) const { return analyzer_.is_weak(stem) ? kWeakWordWeight : 1; }
  // Returns the weight of the stem, at most `limit`; 0 if no visible document contains it.
  double add(std::string_view text, double factor, double limit = kUnlimited) {
    const std::optional<StemNumber> stem = vocabulary_.find(text);
    if (!stem || statistics_.documents(*stem) == 0) return 0;
    const double weight = std::min(factor * statistics_.weight(*stem), limit);
    raise(*stem, weight);
    return weight;
  }
  // Adds the words that begin with a word that no document has ("kube" finds "kubernetes").
  void complete(std::string_view prefix) {
    if (prefix.size() < kMinCompletedBytes || completed_ == kMaxCompletedWords) return;
    ++completed_;
    for (const StemNumber stem : completions(vocabulary_, statistics_, prefix))
      raise(stem, kCompletionWeight * statistics_.weight(stem));
  }
  void raise(StemNumber stem, double weight) {
    double& known = weights_[stem];
    known = std::max(known, weight);
  }

  const Analyzer& analyzer_;
  const Vocabulary& vocabulary_;
  const Statistics& statistics_;
  std::map<StemNumber, double> weights_;
  std::size_t completed_ = 0;
};

}  // namespace

Result<Hits> Ranking::search(const Query& query) {
  const std::shared_ptr<const Statistics> statistics = statistics_.get(query.visible);
  const std::vector<Term> terms = query_terms(truncate_utf8(query.text, kMaxQueryBytes), *statistics);
  const Result<std::vector<DocumentNumber>> found = candidates(terms, query, *statistics);
  if (!found) return found.error();
  weights_.resize(std::max(weights_.size(), store_.vocabulary().number_bound()));
  for (const Term& term : terms) weights_[term.stem] = term.weight;
  std::vector<Hit> hits;
  hits.reserve(found->size());
  for (const DocumentNumber number : *found) {
    const double points = score(store_.document(number), *statistics);
    if (points > 0) hits.push_back({number, points});
  }
  for (const Term& term : terms) weights_[term.stem] = 0;

  const std::size_t begin = std::min(query.offset, hits.size());
  const std::size_t end = begin + std::min(query.limit, hits.size() - begin);
  std::partial_sort(hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(end), hits.end(),
                    [](const Hit& a, const Hit& b) {
                      return a.score != b.score ? a.score > b.score : a.number < b.number;
                    });
  Hits page;
  page.more = end < hits.size();
  page.hits.assign(hits.begin() + static_cast<std::ptrdiff_t>(begin),
                   hits.begin() + static_cast<std::ptrdiff_t>(end));
  return page;
}

// Returns the terms with the greatest weights, ordered from the rarest to the most common.
std::vector<Ranking::Term> Ranking::query_terms(std::string_view text, const Statistics& statistics) const {
  QueryWeights words(store_, statistics);
  words.add_text(text);
  std::vector<Term> terms;
  for (const auto& [stem, weight] : words.weights()) terms.push_back({stem, weight});
  if (terms.size() > kMaxQueryTerms) {
    std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.weight > b.weight; });
    terms.resize(kMaxQueryTerms);
  }
  std::sort(terms.begin(), terms.end(), [&statistics](const Term& a, const Term& b) {
    return statistics.documents(a.stem) < statistics.documents(b.stem);
  });
  return terms;
}

// Returns whether it is cheaper to score all visible documents than to read the postings, which hidden
// documents have as well. Both have the same hits, because kMaxPostings is not reached either way.
bool Ranking::should_score_all(const std::vector<Term>& terms, const Statistics& statistics) const {
  if (statistics.count() > kMaxPostings) return false;
  std::size_t postings = 0;
  for (const Term& term : terms) postings += store_.vocabulary().documents(term.stem);
  return statistics.count() < postings;
}

// Returns the documents to be scored: those with rare words of the query. Documents that only have common
// words are left out if there are enough others.
Result<std::vector<DocumentNumber>> Ranking::candidates(const std::vector<Term>& terms, const Query& query,
                                                        const Statistics& statistics) {
  std::vector<DocumentNumber> found;
  if (query.visible && should_score_all(terms, statistics)) {
    query.visible->each([&found](DocumentNumber number) { found.push_back(number); });
    return found;
  }
  std::vector<bool> seen(store_.number_bound());
  std::size_t postings = 0;
  for (const Term& term : terms) {
    postings += statistics.documents(term.stem);
    if (postings > kMaxPostings && found.size() >= kEnoughCandidates + query.offset + query.limit) break;
    const Result<void> read = store_.postings().each_document(term.stem, [&](DocumentNumber number) {
      if ((!query.visible || query.visible->contains(number)) && !seen[number]) {
        seen[number] = true;
        found.push_back(number);
      }
      return true;
    });
    if (!read) return read.error();
  }
  return found;
}

double Ranking::score(const EncodedDocument& document, const Statistics& statistics) const {
  const double length = static_cast<double>(document.length()) / statistics.mean_length();
  const double norm = kSaturation * (1 - kLengthInfluence + kLengthInfluence * length);
  double sum = 0;
  double name = 0;
  double mentioned = 0;
  document.each_stem([&](const StemCount& stem) {
    const double weight = weights_[stem.stem];
    if (weight > 0) sum += weight * stem.count * (kSaturation + 1) / (stem.count + norm);
    if (!stem.in_name) return;
    name += statistics.weight(stem.stem);
    mentioned += weight;
  });
  return name > 0 ? sum * (1 + kNameInfluence * mentioned / name) : sum;
}

}  // namespace fairlead::search
