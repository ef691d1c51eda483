#include "sql/sqlite_statements.hpp"

#include <charconv>
#include <limits>

namespace fairlead::sql {

namespace {

// Returns the number of the parameter "$12"; 0 for a parameter of another form.
std::size_t parameter_number(const char* name) {
  if (!name || name[0] != '$') return 0;
  const std::string_view digits(name + 1);
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return failed == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

int bind(sqlite3_stmt* statement, int index, const Value& value) {
  if (const auto* const number = std::get_if<std::int64_t>(&value))
    return sqlite3_bind_int64(statement, index, *number);
  if (const auto* const text = std::get_if<std::string>(&value))
    return sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
  return sqlite3_bind_null(statement, index);
}

Value column(sqlite3_stmt* statement, int index) {
  switch (sqlite3_column_type(statement, index)) {
    case SQLITE_NULL: return Value();
    case SQLITE_INTEGER: return Value(std::int64_t{sqlite3_column_int64(statement, index)});
    default: break;
  }
  const auto* const text = static_cast<const char*>(sqlite3_column_blob(statement, index));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, index));
  return Value(text ? std::string(text, size) : std::string());
}

}  // namespace

sqlite3_stmt* SqliteStatements::prepare(sqlite3* connection, std::string_view text) {
  if (const auto found = statements_.find(text); found != statements_.end()) return found->second.get();
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return nullptr;
  sqlite3_stmt* prepared = nullptr;
  const char* rest = nullptr;
  const int size = static_cast<int>(text.size());
  if (sqlite3_prepare_v3(connection, text.data(), size, SQLITE_PREPARE_PERSISTENT, &prepared, &rest))
    return nullptr;
  SqliteStatement statement(prepared);
  if (!prepared || std::string_view(rest, text.data() + size).find_first_not_of(" ;\n") < text.size())
    return nullptr;
  if (statements_.size() >= kMaxStatements) statements_.clear();
  statements_[std::string(text)] = std::move(statement);
  return prepared;
}

Result<void> bind_parameters(sqlite3_stmt* statement, std::span<const Value> values) {
  const int count = sqlite3_bind_parameter_count(statement);
  std::size_t highest = 0;
  for (int index = 1; index <= count; ++index) {
    const std::size_t number = parameter_number(sqlite3_bind_parameter_name(statement, index));
    highest = std::max(highest, number);
    if (number == 0 || number > values.size() || bind(statement, index, values[number - 1]))
      return Error(ErrorKind::validation,
                   "a parameter of the statement has no value, or its value is too long");
  }
  if (highest == values.size()) return {};
  return Error(ErrorKind::validation, "the statement has " + std::to_string(highest) + " parameters, but " +
                                          std::to_string(values.size()) + " values were given");
}

Row current_row(sqlite3_stmt* statement) {
  const int count = sqlite3_column_count(statement);
  Row row;
  row.reserve(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) row.push_back(column(statement, index));
  return row;
}

}  // namespace fairlead::sql
