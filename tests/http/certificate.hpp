// Certificates for TLS tests.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

#include "fairlead/http/server.hpp"
#include "support/support.hpp"

namespace fairlead::test {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, Deleter<Free>>;

// Creates a key and a self-signed certificate for `names` ("DNS:localhost,IP:127.0.0.1").
inline http::TlsFiles make_certificate(const TempDir& directory, const std::string& subject,
                                       const std::string& names) {
  http::TlsFiles files{directory / "certificate.pem", directory / "key.pem"};
  const Owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
  const Owned<X509, X509_free> certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  const Owned<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str()));
  X509_add_ext(certificate.get(), extension.get(), -1);
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  const Owned<std::FILE, std::fclose> key_file(std::fopen(files.key.c_str(), "w"));
  PEM_write_PrivateKey(key_file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  const Owned<std::FILE, std::fclose> certificate_file(std::fopen(files.certificate.c_str(), "w"));
  PEM_write_X509(certificate_file.get(), certificate.get());
  return files;
}

}  // namespace fairlead::test
