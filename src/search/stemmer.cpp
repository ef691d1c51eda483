#include "search/stemmer.hpp"

#include <array>
#include <utility>

namespace fairlead::search {
namespace {

// Longer words are identifiers such as hashes. Nobody searches for them.
constexpr int kMaxStemBytes = 64;

Result<fts5_api*> fts5_api_of(sqlite3* database) {
  fts5_api* api = nullptr;
  const Result<SqliteStatement> statement = prepare(database, "SELECT fts5(?1)");
  if (!statement) return statement.error();
  sqlite3_bind_pointer(statement->get(), 1, static_cast<void*>(&api), "fts5_api_ptr", nullptr);
  sqlite3_step(statement->get());
  if (!api) return Error(ErrorKind::io, "this build of SQLite has no FTS5");
  return api;
}

int visit_token(void* context, int, const char* token, int size, int, int) {
  if (size > 0 && size <= kMaxStemBytes)
    (*static_cast<const Stemmer::Visit*>(context))({token, static_cast<std::size_t>(size)});
  return SQLITE_OK;
}

}  // namespace

Result<Stemmer> Stemmer::create(sqlite3* database) {
  const Result<fts5_api*> api = fts5_api_of(database);
  if (!api) return api.error();
  fts5_tokenizer tokenizer{};
  void* user_data = nullptr;
  if ((*api)->xFindTokenizer(*api, "porter", &user_data, &tokenizer) != SQLITE_OK)
    return Error(ErrorKind::io, "this build of SQLite has no porter tokenizer");
  std::array<const char*, 3> arguments = {"unicode61", "remove_diacritics", "2"};
  Fts5Tokenizer* instance = nullptr;
  if (tokenizer.xCreate(user_data, arguments.data(), static_cast<int>(arguments.size()), &instance) !=
      SQLITE_OK)
    return Error(ErrorKind::io, "could not create the tokenizer of the tool index");
  return Stemmer(tokenizer, instance);
}

void Stemmer::each_stem(std::string_view text, const Visit& visit) const {
  void* const context = const_cast<void*>(static_cast<const void*>(&visit));
  tokenizer_.xTokenize(instance_, context, FTS5_TOKENIZE_DOCUMENT, text.data(), static_cast<int>(text.size()),
                       &visit_token);
}

}  // namespace fairlead::search
