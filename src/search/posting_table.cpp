#include "search/posting_table.hpp"

#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace fairlead::search {
namespace {

// Appends `stem` in base 36, which the tokenizer "ascii" does not change.
void append_stem(StemNumber stem, std::string& text) {
  std::array<char, 8> digits{};
  const std::to_chars_result written = std::to_chars(digits.data(), digits.data() + digits.size(), stem, 36);
  text.append(digits.data(), written.ptr);
}

}  // namespace

Result<PostingTable> PostingTable::create(sqlite3* database) {
  // Neither positions nor lengths are stored: Ranking computes the scores from encoded documents.
  const Result<void> created =
      execute(database,
              "CREATE VIRTUAL TABLE postings USING fts5(stems, content='', columnsize=0, detail=none, "
              "tokenize='ascii')");
  if (!created) return created.error();
  Result<SqliteStatement> insert = prepare(database, "INSERT INTO postings(rowid, stems) VALUES(?1, ?2)");
  if (!insert) return insert.error();
  Result<SqliteStatement> remove =
      prepare(database, "INSERT INTO postings(postings, rowid, stems) VALUES('delete', ?1, ?2)");
  if (!remove) return remove.error();
  Result<SqliteStatement> match = prepare(database, "SELECT rowid FROM postings WHERE postings MATCH ?1");
  if (!match) return match.error();
  return PostingTable(database, std::move(*insert), std::move(*remove), std::move(*match));
}

Result<void> PostingTable::insert(DocumentNumber number, const EncodedDocument& document) {
  return change(insert_.get(), number, document);
}

Result<void> PostingTable::remove(DocumentNumber number, const EncodedDocument& document) {
  return change(remove_.get(), number, document);
}

Result<void> PostingTable::change(sqlite3_stmt* statement, DocumentNumber number,
                                  const EncodedDocument& document) {
  std::string text;
  document.each_stem([&text](const StemCount& stem) {
    append_stem(stem.stem, text);
    text += ' ';
  });
  sqlite3_bind_int64(statement, 1, number);
  sqlite3_bind_text(statement, 2, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  const int status = sqlite3_step(statement);
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  if (status == SQLITE_DONE) return {};
  return sqlite_error("the tool index failed", database_);
}

void PostingTable::bind_stem(StemNumber stem) {
  std::string quoted = "\"";
  append_stem(stem, quoted);
  quoted += '"';
  sqlite3_bind_text(match_.get(), 1, quoted.data(), static_cast<int>(quoted.size()), SQLITE_TRANSIENT);
}

}  // namespace fairlead::search
