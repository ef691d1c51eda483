// Limits of rows (docs/limits.md). Error messages refer to a limit by its name. Private to the library.
#pragma once

#include <cstddef>
#include <string_view>

namespace fairlead::registry {

// Characters are code points of UTF-8.
struct NamedLimit {
  std::string_view name;
  std::size_t value;
};

inline constexpr NamedLimit kMaxRowBytes{"max_row_bytes",
                                         1u << 20};             // of the body of a request, and of a row
inline constexpr NamedLimit kMaxRowDepth{"max_row_depth", 64};  // nesting of arrays and objects
inline constexpr NamedLimit kMaxNameCharacters{"max_name_characters", 128};  // of users, groups, tokens
inline constexpr NamedLimit kMaxEndpointNameBytes{"max_endpoint_name_bytes", 64};
inline constexpr NamedLimit kMaxTitleCharacters{"max_title_characters", 200};
inline constexpr NamedLimit kMaxDescriptionCharacters{"max_description_characters", 10'000};
inline constexpr NamedLimit kMaxDomainCharacters{"max_domain_characters", 64};
inline constexpr NamedLimit kMaxTags{"max_tags", 64};  // of a row
inline constexpr NamedLimit kMaxTagBytes{"max_tag_bytes", 64};
inline constexpr NamedLimit kMaxPatterns{"max_patterns", 1'000};  // of one list or map
inline constexpr NamedLimit kMaxPatternBytes{"max_pattern_bytes", 256};
inline constexpr NamedLimit kMaxToolNameBytes{"max_tool_name_bytes", 128};  // that a rename rule gives
inline constexpr NamedLimit kMaxPublicToolNameBytes{"max_public_name_bytes", 64};
inline constexpr NamedLimit kMaxAccessEntries{"max_access_entries", 10'000};  // users, groups, members
inline constexpr NamedLimit kMaxScopes{"max_scopes", 64};                     // of a token
inline constexpr NamedLimit kMaxScopeBytes{"max_scope_bytes", 128};
inline constexpr NamedLimit kMaxIdBytes{"max_id_bytes", 64};
inline constexpr NamedLimit kMaxSecretNameBytes{"max_secret_name_bytes", 128};
inline constexpr NamedLimit kMaxSecretValueBytes{"max_secret_value_bytes", 64u << 10};
inline constexpr NamedLimit kMaxSecrets{"max_secrets", 10'000};                // of the registry
inline constexpr NamedLimit kMaxSecretsBytes{"max_secrets_bytes", 64u << 20};  // of all values, encrypted

}  // namespace fairlead::registry
