#include "sql/job_transaction.hpp"

#include <algorithm>
#include <exception>
#include <new>

#include "base/printable.hpp"

namespace fairlead::sql {

namespace {

bool is_text_without_nul(std::string_view text) {
  while (!text.empty()) {
    const auto special = std::ranges::find_if(text, [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte == 0 || byte >= 0x80;  // NUL, or not ASCII
    });
    text.remove_prefix(static_cast<std::size_t>(special - text.begin()));
    if (text.empty()) return true;
    const CodePoint point = first_code_point(text);
    if (point.length == 0 || point.value == 0) return false;
    text.remove_prefix(point.length);
  }
  return true;
}

Result<void> check_parameters(std::span<const Value> parameters) {
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    if (is_text_without_nul(text(parameters[index]))) continue;
    return Error(ErrorKind::validation,
                 "value $" + std::to_string(index + 1) + " of the statement is not UTF-8 text without NUL");
  }
  return {};
}

Result<void> call_job(Database::Job& job, Transaction& transaction) {
  try {
    return job(transaction);
  } catch (const std::bad_alloc&) {
    return Error(ErrorKind::resource_exhausted, "out of memory in a job of the database");
  } catch (const std::exception& thrown) {
    return Error(ErrorKind::io, std::string("a job of the database threw an exception: ") + thrown.what());
  } catch (...) {
    return Error(ErrorKind::io, "a job of the database threw an exception");
  }
}

}  // namespace

Result<std::vector<Row>> JobTransaction::execute(std::string_view statement,
                                                 std::span<const Value> parameters) {
  if (failure_) return *failure_;
  const Result<void> checked = check_parameters(parameters);
  Result<std::vector<Row>> rows = checked ? driver_.execute(statement, parameters) : checked.error();
  if (!rows) failure_ = rows.error();
  return rows;
}

Result<void> JobTransaction::notify() {
  if (failure_) return *failure_;
  Result<void> notified = driver_.notify();
  if (!notified) failure_ = notified.error();
  return notified;
}

Result<void> finish_transaction(Driver& driver, Database::Job& job) {
  JobTransaction transaction(driver);
  Result<void> outcome = call_job(job, transaction);
  if (outcome && transaction.failure()) outcome = *transaction.failure();
  if (outcome) outcome = driver.commit();
  if (!outcome) driver.roll_back();
  return outcome;
}

}  // namespace fairlead::sql
