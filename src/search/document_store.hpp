// DocumentStore: the indexed documents, their vocabulary and postings. Used by one thread at a time. Private
// to the library.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "search/analyzer.hpp"
#include "search/posting_table.hpp"

namespace fairlead::search {

// The text of a tool. All of it counts equally.
struct ToolText {
  std::string server;
  std::string name;
  std::string title;
  std::string description;
  std::string input_schema;  // valid JSON, or empty; its parameters' names and descriptions count
  std::string domain;
  std::vector<std::string> tags;
};

struct Document {
  DocumentNumber number = 0;
  ToolText text;
};

class DocumentStore {
 public:
  // The limit max_document_bytes: the rest of a longer text is not indexed.
  static constexpr std::size_t kMaxDocumentBytes = 16u << 10;

  static Result<std::unique_ptr<DocumentStore>> create();

  // Adds documents, or replaces those with the same numbers. After a failure the store is inconsistent and is
  // not used again.
  Result<void> put(std::span<const Document> documents);
  // Removes documents. Numbers without a document are ignored.
  Result<void> remove(std::span<const DocumentNumber> numbers);

  const Analyzer& analyzer() const noexcept { return analyzer_; }
  const Vocabulary& vocabulary() const noexcept { return vocabulary_; }
  PostingTable& postings() noexcept { return postings_; }
  // Returns an empty document if there is none.
  const EncodedDocument& document(DocumentNumber number) const noexcept;
  std::size_t number_bound() const noexcept { return documents_.size(); }
  std::size_t document_count() const noexcept { return count_; }
  std::uint64_t total_length() const noexcept { return total_length_; }
  std::uint64_t generation() const noexcept { return generation_; }  // changes with every change

 private:
  DocumentStore(SqliteDatabase database, Analyzer analyzer, PostingTable postings)
      : database_(std::move(database)), analyzer_(std::move(analyzer)), postings_(std::move(postings)) {}
  EncodedDocument encode(const ToolText& text);
  Result<void> remove_one(DocumentNumber number);
  Result<void> insert_one(DocumentNumber number, EncodedDocument document);

  SqliteDatabase database_;  // outlives its statements and tokenizer
  Analyzer analyzer_;
  PostingTable postings_;
  Vocabulary vocabulary_;
  std::vector<EncodedDocument> documents_;  // by number
  std::size_t count_ = 0;
  std::uint64_t total_length_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace fairlead::search
