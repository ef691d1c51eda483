// The signature of a bundle (.mcpb): a PKCS#7 signature behind the ZIP archive. Private to the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fairlead::packages {

struct Signature {
  enum class State : std::uint8_t {
    none,         // not signed, or the signature is not valid: see `problem`
    self_signed,  // valid, but anybody could have made the certificate
    trusted,      // valid, and the certificate is for signing code and of a trusted issuer
  };

  State state = State::none;
  std::string publisher;   // common name of the subject of the certificate
  std::string issuer;      // common name
  std::string valid_from;  // RFC 3339
  std::string valid_until;
  std::string fingerprint;  // SHA-256 of the certificate, in lower-case hexadecimal
  std::string problem;      // why a signature that exists is not valid; empty if there is none
};

// "unsigned", "self-signed", "signed".
std::string_view to_string(Signature::State state) noexcept;

struct SignedBytes {
  std::string_view content;  // what the signature is about: the ZIP archive
  std::string_view block;    // the signature with its frame; empty if there is none
  std::string_view pkcs7;    // empty if there is none, or its frame is damaged
};
// Splits the bytes of a bundle.
SignedBytes split_signature(std::string_view bundle);

// Verifies the signature. `certificates_directory` has the trusted issuers; empty: those of the system.
Signature verify_signature(const SignedBytes& bytes, const std::string& certificates_directory = {});

}  // namespace fairlead::packages
