// Prepares text for a tokenizer that separates words at characters that are neither letters nor digits.
// Private to the library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fairlead::search {

struct PreparedText {
  // The text with a space at every boundary within an identifier ("getUserName" becomes "get User Name"),
  // followed by the identifier itself ("getUserName"), because users also write "github" for "GitHub".
  std::string words;
  // Runs of characters of scripts that do not separate words by spaces (Chinese, Japanese, Korean, Thai).
  std::vector<std::vector<std::string>> runs;
};

// `text` may be any bytes: bytes that are not UTF-8 separate words.
PreparedText prepare_text(std::string_view text);

}  // namespace fairlead::search
