#include "search/document_store.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "search/parameter_text.hpp"

namespace fairlead::search {
namespace {

// Counts the stems of a document. Only the first kMaxDocumentBytes of its text count.
class StemCounter {
 public:
  StemCounter(const Analyzer& analyzer, Vocabulary& vocabulary)
      : analyzer_(analyzer), vocabulary_(vocabulary) {}

  void add(std::string_view text, bool in_name = false) {
    text = text.substr(0, bytes_left_);
    bytes_left_ -= text.size();
    analyzer_.each_document_stem(text, [this, in_name](std::string_view stem, StemKind kind) {
      // Fillers of a name are indexed, so that "hello" finds the tool `hello`, but they are not marked as
      // parts of the name, because queries need not mention them.
      if (kind == StemKind::filler && !in_name) return;
      const StemNumber number = vocabulary_.intern(stem);
      StemCount& count = counts_[number];
      count.stem = number;
      ++count.count;
      count.in_name = count.in_name || (in_name && kind != StemKind::filler);
      if (kind != StemKind::pair) ++length_;
    });
  }
  // Returns the number of words and characters.
  std::uint32_t length() const noexcept { return length_; }
  std::vector<StemCount> sorted() const {
    std::vector<StemCount> stems;
    stems.reserve(counts_.size());
    for (const auto& [number, count] : counts_) stems.push_back(count);
    std::sort(stems.begin(), stems.end(),
              [](const StemCount& a, const StemCount& b) { return a.stem < b.stem; });
    return stems;
  }

 private:
  const Analyzer& analyzer_;
  Vocabulary& vocabulary_;
  std::unordered_map<StemNumber, StemCount> counts_;
  std::uint32_t length_ = 0;
  std::size_t bytes_left_ = DocumentStore::kMaxDocumentBytes;
};

}  // namespace

Result<std::unique_ptr<DocumentStore>> DocumentStore::create() {
  Result<SqliteDatabase> database = open_in_memory();
  if (!database) return database.error();
  Result<Analyzer> analyzer = Analyzer::create(database->get());
  if (!analyzer) return analyzer.error();
  Result<PostingTable> postings = PostingTable::create(database->get());
  if (!postings) return postings.error();
  return std::unique_ptr<DocumentStore>(
      new DocumentStore(std::move(*database), std::move(*analyzer), std::move(*postings)));
}

const EncodedDocument& DocumentStore::document(DocumentNumber number) const noexcept {
  static const EncodedDocument kNone;
  return number < documents_.size() ? documents_[number] : kNone;
}

Result<void> DocumentStore::put(std::span<const Document> documents) {
  ++generation_;
  std::vector<const Document*> ordered;
  ordered.reserve(documents.size());
  for (const Document& document : documents) ordered.push_back(&document);
  // FTS5 writes a new segment whenever a rowid is not greater than the previous one.
  std::sort(ordered.begin(), ordered.end(), [](const Document* a, const Document* b) {
    return a->number != b->number ? a->number < b->number : a < b;
  });
  if (const Result<void> begun = postings_.begin(); !begun) return begun;
  for (const Document* const document : ordered) {
    if (const Result<void> removed = remove_one(document->number); !removed) return removed;
  }
  for (const Document* const document : ordered) {
    // A number that occurs twice in `documents`: the last one counts.
    if (const Result<void> removed = remove_one(document->number); !removed) return removed;
    if (const Result<void> added = insert_one(document->number, encode(document->text)); !added) return added;
  }
  return postings_.commit();
}

Result<void> DocumentStore::remove(std::span<const DocumentNumber> numbers) {
  ++generation_;
  std::vector<DocumentNumber> ordered(numbers.begin(), numbers.end());
  std::sort(ordered.begin(), ordered.end());
  if (const Result<void> begun = postings_.begin(); !begun) return begun;
  for (const DocumentNumber number : ordered) {
    if (const Result<void> removed = remove_one(number); !removed) return removed;
  }
  return postings_.commit();
}

EncodedDocument DocumentStore::encode(const ToolText& text) {
  StemCounter counter(analyzer_, vocabulary_);
  counter.add(text.name, true);
  counter.add(text.server);
  counter.add(text.title);
  counter.add(text.domain);
  for (const std::string& tag : text.tags) counter.add(tag);
  counter.add(text.description);
  counter.add(parameter_text(json::View(text.input_schema), kMaxDocumentBytes));
  return EncodedDocument(counter.sorted(), counter.length());
}

Result<void> DocumentStore::remove_one(DocumentNumber number) {
  if (document(number).empty()) return {};
  const EncodedDocument removed = std::exchange(documents_[number], EncodedDocument());
  if (Result<void> done = postings_.remove(number, removed); !done) return done;
  removed.each_stem([this](const StemCount& stem) { vocabulary_.remove_document(stem.stem); });
  total_length_ -= removed.length();
  --count_;
  return {};
}

Result<void> DocumentStore::insert_one(DocumentNumber number, EncodedDocument document) {
  if (document.empty()) return {};
  document.each_stem([this](const StemCount& stem) { vocabulary_.add_document(stem.stem); });
  if (Result<void> done = postings_.insert(number, document); !done) return done;
  total_length_ += document.length();
  ++count_;
  if (number >= documents_.size()) documents_.resize(std::size_t{number} + 1);
  documents_[number] = std::move(document);
  return {};
}

}  // namespace fairlead::search
