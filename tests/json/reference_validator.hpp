// A slow and simple JSON validator: the grammar of RFC 8259, rule by rule. The tests and the fuzzer compare
// the scanner with it.
#pragma once

#include <cstddef>
#include <string_view>

namespace fairlead::json::reference {

class Validator {
 public:
  Validator(std::string_view text, std::size_t max_depth) : text_(text), max_depth_(max_depth) {}

  bool text() { return is_utf8() && ws() && value() && ws() && at_ == text_.size(); }

 private:
  // ws = *( %x20 / %x09 / %x0A / %x0D ); always returns true, so that it can be used in a sequence of rules.
  bool ws() {
    while (one_of(" \t\n\r")) {
    }
    return true;
  }

  bool value() {
    return word("false") || word("null") || word("true") || object() || array() || number() || string();
  }

  bool object() {
    if (!one_of("{")) return false;
    if (++depth_ > max_depth_) return stop();
    ws();
    if (!one_of("}")) {
      if (!member()) return stop();
      while (one_of(",")) {
        if (!member()) return stop();
      }
      if (!one_of("}")) return stop();
    }
    --depth_;
    return true;
  }

  bool member() { return ws() && string() && ws() && one_of(":") && ws() && value() && ws(); }

  bool array() {
    if (!one_of("[")) return false;
    if (++depth_ > max_depth_) return stop();
    ws();
    if (!one_of("]")) {
      if (!element()) return stop();
      while (one_of(",")) {
        if (!element()) return stop();
      }
      if (!one_of("]")) return stop();
    }
    --depth_;
    return true;
  }

  bool element() { return ws() && value() && ws(); }

  // number = [ minus ] int [ frac ] [ exp ]
  bool number() {
    const bool minus = one_of("-");
    if (!one_of("0")) {
      if (!one_of("123456789")) return minus ? stop() : false;
      digits();
    }
    if (one_of(".") && !digits()) return stop();
    if (one_of("eE")) {
      one_of("+-");
      if (!digits()) return stop();
    }
    return true;
  }

  bool digits() {
    if (!one_of("0123456789")) return false;
    while (one_of("0123456789")) {
    }
    return true;
  }

  bool string() {
    if (!one_of("\"")) return false;
    while (!one_of("\"")) {
      if (one_of("\\")) {
        if (!escape()) return stop();
      } else if (at_ == text_.size() || static_cast<unsigned char>(text_[at_]) < 0x20) {
        return stop();
      } else {
        ++at_;
      }
    }
    return true;
  }

  bool escape() {
    if (one_of("\"\\/bfnrt")) return true;
    return one_of("u") && hex() && hex() && hex() && hex();
  }

  bool hex() { return one_of("0123456789abcdefABCDEF"); }

  bool word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool one_of(std::string_view set) {
    if (at_ == text_.size() || set.find(text_[at_]) == std::string_view::npos) return false;
    ++at_;
    return true;
  }

  // Makes all further rules fail, so that the failure reaches text().
  bool stop() {
    text_ = {};
    at_ = 0;
    return false;
  }

  bool is_utf8() const {
    std::size_t i = 0;
    while (i < text_.size()) {
      const unsigned lead = byte(i);
      const std::size_t length = lead < 0x80       ? 1
                                 : lead >> 5 == 6  ? 2
                                 : lead >> 4 == 14 ? 3
                                 : lead >> 3 == 30 ? 4
                                                   : 0;
      if (length == 0 || i + length > text_.size()) return false;
      unsigned code = length == 1 ? lead : lead & (0x7fu >> length);
      for (std::size_t k = 1; k < length; ++k) {
        if (byte(i + k) >> 6 != 2) return false;
        code = code << 6 | (byte(i + k) & 0x3f);
      }
      constexpr unsigned kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
      if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
      i += length;
    }
    return true;
  }

  unsigned byte(std::size_t i) const { return static_cast<unsigned char>(text_[i]); }

  std::string_view text_;
  std::size_t max_depth_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

inline bool is_valid(std::string_view text, std::size_t max_depth = 512) {
  return Validator(text, max_depth).text();
}

}  // namespace fairlead::json::reference
