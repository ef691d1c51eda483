// PostingTable: the documents of each stem, in a contentless FTS5 table in memory. Its text consists of the
// numbers of stems, so that no text of a server or a client ever reaches the query language of FTS5. Private
// to the library.
#pragma once

#include <vector>

#include "search/document_set.hpp"
#include "search/encoded_document.hpp"
#include "search/sqlite.hpp"

namespace fairlead::search {

class PostingTable {
 public:
  static Result<PostingTable> create(sqlite3* database);

  Result<void> begin() { return execute(database_, "BEGIN"); }
  Result<void> commit() { return execute(database_, "COMMIT"); }
  // Both are called with the same document, because a contentless table does not know what it contains.
  Result<void> insert(DocumentNumber number, const EncodedDocument& document);
  Result<void> remove(DocumentNumber number, const EncodedDocument& document);
  // Calls visit(number) for each document with the stem, in ascending order, until it returns false.
  template <class Visit>
  Result<void> each_document(StemNumber stem, Visit&& visit);

 private:
  PostingTable(sqlite3* database, SqliteStatement insert, SqliteStatement remove, SqliteStatement match)
      : database_(database),
        insert_(std::move(insert)),
        remove_(std::move(remove)),
        match_(std::move(match)) {}
  Result<void> change(sqlite3_stmt* statement, DocumentNumber number, const EncodedDocument& document);
  void bind_stem(StemNumber stem);

  sqlite3* database_;
  SqliteStatement insert_;
  SqliteStatement remove_;
  SqliteStatement match_;
};

template <class Visit>
Result<void> PostingTable::each_document(StemNumber stem, Visit&& visit) {
  bind_stem(stem);
  int status = SQLITE_ROW;
  while ((status = sqlite3_step(match_.get())) == SQLITE_ROW) {
    if (!visit(static_cast<DocumentNumber>(sqlite3_column_int64(match_.get(), 0)))) break;
  }
  sqlite3_reset(match_.get());
  if (status == SQLITE_ROW || status == SQLITE_DONE) return {};
  return sqlite_error("the tool index failed", database_);
}

}  // namespace fairlead::search
