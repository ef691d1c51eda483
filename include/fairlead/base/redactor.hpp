// Redactor: replaces secrets in text that people get to see.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// A set of secrets. Calls are cheap when it is empty.
class Redactor {
 public:
  // Shorter values are not redacted: they occur in too much other text.
  static constexpr std::size_t kMinSecret = 4;
  // Longer secrets and lines are redacted as they are, but not in the forms that they have in URLs and JSON.
  static constexpr std::size_t kMaxEncodedSecret = 8u << 10;

  Redactor() = default;
  explicit Redactor(const std::vector<std::string>& secrets);

  // Each line of a secret with several lines is a secret too, because text is often seen line by line. So are
  // the form that a secret of one line has in URLs (percent-encoded), and the form of each line inside JSON
  // text that is the value of a string. The case of ASCII letters is ignored: hosts of URLs and
  // percent-encoding are written in either. Needs about 20 bytes of memory for each byte of these.
  void add(std::string_view secret);
  bool empty() const noexcept { return secrets_.empty(); }

  // Returns `text` with each secret replaced by `***`, and overlapping ones by a single one. At the end of
  // `text`, where it may have been truncated, the beginning of a secret is replaced too. Takes time
  // proportional to the text, whatever the number of secrets.
  std::string redact(std::string_view text) const;
  // Whether `text` contains a complete secret.
  bool finds_secret(std::string_view text) const;

 private:
  // A state of the Aho-Corasick automaton: the text read so far ends with the first `depth` bytes of a
  // secret, and with no longer beginning of one. States are in breadth-first order, those of one parent side
  // by side.
  struct State {
    std::uint32_t depth = 0;
    std::uint32_t match = 0;     // size of the longest secret that the text ends with; 0: none
    std::uint32_t fallback = 0;  // the state for the longest shorter beginning of a secret
    std::uint32_t first_child = 0;
    std::uint16_t children = 0;  // by last_byte
    unsigned char last_byte = 0;
  };
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Found {
    std::vector<Range> secrets;  // in order; overlapping ones as one
    std::size_t truncated = 0;   // size of the beginning of a secret at the end of the text
  };

  void add_forms(std::string_view secret);
  void insert(std::string_view form);
  void index();
  void add_children(std::uint32_t parent, Range secrets, std::vector<Range>& secrets_of);
  // 0: none.
  std::uint32_t child(std::uint32_t state, unsigned char byte) const noexcept;
  std::uint32_t next(std::uint32_t state, unsigned char byte) const noexcept;
  Found find(std::string_view text) const;
  static void add_found(std::vector<Range>& found, Range secret);

  std::vector<std::string> secrets_;                    // in lower case, sorted
  std::vector<State> states_;                           // the first: nothing of a secret has been read
  std::array<std::uint32_t, 256> children_of_first_{};  // by byte; 0: none
};

// The secrets that are in use now. Thread-safe.
class SharedRedactor : public std::enable_shared_from_this<SharedRedactor> {
 public:
  // Redacts `secrets` until the handle is released.
  std::shared_ptr<void> add(std::vector<std::string> secrets);
  // The secrets in use now.
  std::shared_ptr<const Redactor> current() const;

  std::string redact(std::string_view text) const { return current()->redact(text); }

 private:
  void release(const std::vector<std::string>& secrets);

  mutable std::mutex mutex_;
  std::map<std::string, std::size_t, std::less<>> uses_;
  mutable std::shared_ptr<const Redactor> current_ = std::make_shared<const Redactor>();  // null: outdated
};

}  // namespace fairlead
