// PatternSet: patterns in which `*` stands for any text (base/glob.hpp), for matching many texts. The cost of
// a match depends little on the number of patterns, unless many of them have the same text before their first
// `*`. Private to the layer.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/glob.hpp"

namespace fairlead::gateway {

class PatternSet {
 public:
  PatternSet() = default;
  explicit PatternSet(const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      const std::size_t star = pattern.find('*');
      if (star == std::string::npos) {
        texts_.insert(pattern);
      } else {
        by_prefix_[pattern.substr(0, star)].push_back(pattern);
        prefix_lengths_.insert(star);
      }
    }
  }

  bool empty() const noexcept { return texts_.empty() && by_prefix_.empty(); }
  // Returns whether one of the patterns matches.
  bool matches(std::string_view text) const {
    if (texts_.contains(text)) return true;
    for (const std::size_t length : prefix_lengths_) {
      if (length > text.size()) break;
      const auto found = by_prefix_.find(text.substr(0, length));
      if (found != by_prefix_.end() && any_glob_matches(found->second, text)) return true;
    }
    return false;
  }

 private:
  std::set<std::string, std::less<>> texts_;  // the patterns without `*`
  std::map<std::string, std::vector<std::string>, std::less<>>
      by_prefix_;  // the others, by the text before it
  std::set<std::size_t> prefix_lengths_;
};

}  // namespace fairlead::gateway
