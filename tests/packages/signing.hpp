// Certificates and signatures of bundles for tests.
#pragma once

#include <memory>
#include <string>

struct evp_pkey_st;
struct x509_st;

namespace fairlead::packages::test {

struct Certificate {
  std::shared_ptr<evp_pkey_st> key;
  std::shared_ptr<x509_st> certificate;
};

// `issuer` null: self-signed. `usage`: the extended key usage, such as "codeSigning".
Certificate make_certificate(const std::string& name, const Certificate* issuer,
                             const std::string& usage = {});
// Puts the certificate into a directory of trusted ones.
void trust(const Certificate& certificate, const std::string& directory);
// Returns the bundle with a signature.
std::string signed_bundle(const std::string& bundle, const Certificate& certificate);

}  // namespace fairlead::packages::test
