// Helpers for tests: counts of descriptors and threads, temporary directories, JSON values, polling.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "fairlead/json/raw.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/peer/connection.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAIRLEAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define FAIRLEAD_SANITIZED 1
#endif
#endif
#ifdef FAIRLEAD_SANITIZED
#include <sanitizer/allocator_interface.h>
#endif

namespace fairlead::test {

using namespace std::chrono_literals;

inline std::size_t entry_count(const char* directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}
inline std::size_t open_descriptor_count() {
  return entry_count("/proc/self/fd");
}
inline std::size_t thread_count() {
  return entry_count("/proc/self/task");
}

// Returns the bytes that are allocated and not freed. The resident memory is less reliable: a sanitizer keeps
// freed memory for a while, and how much of it depends on the speed of the machine.
inline std::size_t allocated_bytes() {
#ifdef FAIRLEAD_SANITIZED
  return __sanitizer_get_current_allocated_bytes();
#else
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
#endif
}

// A temporary directory. The destructor removes it with its contents.
class TempDir {
 public:
  TempDir() {
    std::string pattern = std::filesystem::temp_directory_path() / "fairlead-test-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline json::Raw raw(std::string_view text) {
  Result<json::Raw> parsed = json::Raw::parse(text);
  return parsed ? *parsed : throw std::invalid_argument("not JSON: " + std::string(text));
}

inline rpc::Rope rope(std::string_view text) {
  return rpc::Rope(Bytes::copy_of(text));
}

// Polls until `condition` is true. Returns false if it is still false after `limit`.
template <class Condition>
Task<bool> eventually(Loop& loop, Condition condition, std::chrono::milliseconds limit = 50s) {
  const auto until = Clock::now() + limit;
  bool holds = condition();
  while (!holds && Clock::now() < until) {
    co_await sleep_for(loop, 1ms);
    holds = condition();
  }
  co_return holds;
}

}  // namespace fairlead::test
