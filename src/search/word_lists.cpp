#include "search/word_lists.hpp"

#include <array>

namespace fairlead::search {
namespace {

using namespace std::string_view_literals;

constexpr auto kFillerWords = std::to_array(
    {"a"sv,      "an"sv,     "the"sv,    "and"sv,    "or"sv,    "but"sv,   "if"sv,    "then"sv,    "so"sv,
     "of"sv,     "at"sv,     "to"sv,     "from"sv,   "by"sv,    "for"sv,   "with"sv,  "without"sv, "as"sv,
     "into"sv,   "onto"sv,   "about"sv,  "than"sv,   "too"sv,   "very"sv,  "i"sv,     "me"sv,      "my"sv,
     "mine"sv,   "we"sv,     "our"sv,    "you"sv,    "your"sv,  "he"sv,    "him"sv,   "his"sv,     "she"sv,
     "her"sv,    "it"sv,     "its"sv,    "they"sv,   "them"sv,  "their"sv, "this"sv,  "that"sv,    "these"sv,
     "those"sv,  "there"sv,  "here"sv,   "is"sv,     "are"sv,   "was"sv,   "were"sv,  "be"sv,      "been"sv,
     "being"sv,  "am"sv,     "do"sv,     "does"sv,   "did"sv,   "done"sv,  "has"sv,   "have"sv,    "had"sv,
     "having"sv, "can"sv,    "could"sv,  "may"sv,    "might"sv, "must"sv,  "shall"sv, "should"sv,  "will"sv,
     "would"sv,  "what"sv,   "which"sv,  "who"sv,    "whom"sv,  "whose"sv, "when"sv,  "where"sv,   "why"sv,
     "how"sv,    "please"sv, "thanks"sv, "thank"sv,  "hi"sv,    "hello"sv, "hey"sv,   "kindly"sv,  "ok"sv,
     "okay"sv,   "just"sv,   "also"sv,   "really"sv, "some"sv,  "any"sv,   "ve"sv,    "ll"sv,      "re"sv,
     "s"sv,      "t"sv,      "m"sv,      "d"sv,      "don"sv,   "isn"sv,   "doesn"sv, "didn"sv});

constexpr auto kWeakWords = std::to_array(
    {"want"sv,     "need"sv,    "like"sv,     "help"sv,    "tell"sv,        "give"sv,      "know"sv,
     "let"sv,      "all"sv,     "not"sv,      "no"sv,      "only"sv,        "more"sv,      "most"sv,
     "other"sv,    "another"sv, "each"sv,     "every"sv,   "both"sv,        "either"sv,    "one"sv,
     "show"sv,     "find"sv,    "get"sv,      "make"sv,    "use"sv,         "see"sv,       "new"sv,
     "now"sv,      "after"sv,   "before"sv,   "while"sv,   "during"sv,      "via"sv,       "per"sv,
     "such"sv,     "able"sv,    "provide"sv,  "look"sv,    "way"sv,         "best"sv,      "good"sv,
     "current"sv,  "within"sv,  "between"sv,  "through"sv, "anything"sv,    "something"sv, "everything"sv,
     "existing"sv, "thing"sv,   "specific"sv, "us"sv,      "information"sv, "on"sv,        "off"sv,
     "up"sv,       "down"sv,    "in"sv,       "out"sv,     "over"sv,        "under"sv});

constexpr auto kSynonymGroups = std::to_array({
    "delete remove erase drop destroy"sv,
    "create add new make insert"sv,
    "update edit modify change alter"sv,
    "get read retrieve fetch load"sv,
    "list show display enumerate"sv,
    "search find locate lookup query"sv,
    "run execute invoke"sv,
    "write save store persist"sv,
    "send deliver"sv,
    "rename move relocate"sv,
    "start begin launch"sv,
    "stop terminate kill"sv,
    "compare diff difference"sv,
    "convert transform"sv,
    "buy purchase shop"sv,
    "folder directory"sv,
    "picture image photo"sv,
    "repository repo"sv,
    "email mail"sv,
    "message chat"sv,
    "calendar schedule"sv,
    "meeting event"sv,
    "url link website webpage"sv,
    "weather forecast temperature"sv,
    "song music"sv,
    "movie film"sv,
    "job career"sv,
    "document doc"sv,
    "graph chart plot diagram"sv,
    "ticket issue"sv,
    "user account"sv,
    "database db sql"sv,
    "configuration config setting"sv,
    "environment env"sv,
    "function method"sv,
    "error exception failure"sv,
    "price cost"sv,
    "currency money dollar euro"sv,
    "car vehicle"sv,
    "flight airline"sv,
    "restaurant dining"sv,
});

}  // namespace

std::span<const std::string_view> filler_words() noexcept {
  return kFillerWords;
}

std::span<const std::string_view> weak_words() noexcept {
  return kWeakWords;
}

std::span<const std::string_view> synonym_groups() noexcept {
  return kSynonymGroups;
}

}  // namespace fairlead::search
