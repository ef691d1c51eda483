// UnsentMessages: the messages of a connection that are queued and not sent, when they may be sent in another
// order than they were queued. Positions count the bytes of all messages that were ever queued.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace fairlead::transport {

class UnsentMessages {
 public:
  // Adds a message that ends at `end`. REQUIRES: `end` is at least that of every earlier message.
  void add(std::uint64_t end, std::size_t size) {
    messages_.push_back(Message{end, size, false});
    bytes_ += size;
  }
  // Removes the message that ends at `end`. Returns false if it was removed before, or never added.
  bool remove(std::uint64_t end) {
    if (!messages_.empty() && messages_.front().end == end) {  // most messages are sent in order
      bytes_ -= messages_.front().size;
      do messages_.pop_front();
      while (!messages_.empty() && messages_.front().sent);
      return true;
    }
    const auto found = find(end);
    if (found == messages_.end() || found->sent) return false;
    found->sent = true;
    bytes_ -= found->size;
    while (!messages_.empty() && messages_.front().sent) messages_.pop_front();
    return true;
  }
  bool contains(std::uint64_t end) const {
    const auto found = find(end);
    return found != messages_.end() && !found->sent;
  }
  // Returns the total size of the messages.
  std::size_t bytes() const noexcept { return bytes_; }
  // Returns the position up to which all messages have been sent, given the end of all queued messages.
  std::uint64_t sent_position(std::uint64_t queued_position) const noexcept {
    return messages_.empty() ? queued_position : messages_.front().end - messages_.front().size;
  }

 private:
  struct Message {
    std::uint64_t end;
    std::size_t size;
    bool sent;  // stays in the queue until all earlier messages are sent
  };

  template <class Messages>
  static auto find_in(Messages& messages, std::uint64_t end) {
    const auto found = std::ranges::lower_bound(messages, end, {}, &Message::end);
    return found != messages.end() && found->end == end ? found : messages.end();
  }
  std::deque<Message>::iterator find(std::uint64_t end) { return find_in(messages_, end); }
  std::deque<Message>::const_iterator find(std::uint64_t end) const { return find_in(messages_, end); }

  std::deque<Message> messages_;  // in the order of their ends; the first one is not sent
  std::size_t bytes_ = 0;
};

}  // namespace fairlead::transport
