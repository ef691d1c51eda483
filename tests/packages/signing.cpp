#include "packages/signing.hpp"

#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>

#include "packages/zip_writer.hpp"

namespace fairlead::packages::test {

namespace {

void add_extension(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

Certificate make_certificate(const std::string& name, const Certificate* issuer, const std::string& usage) {
  Certificate made;
  made.key.reset(EVP_EC_gen("P-256"), EVP_PKEY_free);
  made.certificate.reset(X509_new(), X509_free);
  X509* const certificate = made.certificate.get();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), issuer ? 2 : 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86'400);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer ? issuer->certificate.get() : certificate));
  add_extension(certificate, NID_basic_constraints, issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
  if (!usage.empty()) add_extension(certificate, NID_ext_key_usage, usage);
  X509_sign(certificate, issuer ? issuer->key.get() : made.key.get(), EVP_sha256());
  return made;
}

void trust(const Certificate& certificate, const std::string& directory) {
  char name[16];
  std::snprintf(name, sizeof name, "%08lx.0", X509_subject_name_hash(certificate.certificate.get()));
  BIO* const file = BIO_new_file((directory + "/" + name).c_str(), "w");
  PEM_write_bio_X509(file, certificate.certificate.get());
  BIO_free_all(file);
}

std::string signed_bundle(const std::string& bundle, const Certificate& certificate) {
  BIO* const data = BIO_new_mem_buf(bundle.data(), static_cast<int>(bundle.size()));
  CMS_ContentInfo* const cms = CMS_sign(certificate.certificate.get(), certificate.key.get(), nullptr, data,
                                        CMS_DETACHED | CMS_BINARY);
  unsigned char* der = nullptr;
  const int size = i2d_CMS_ContentInfo(cms, &der);
  const std::string pkcs7(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  CMS_ContentInfo_free(cms);
  BIO_free_all(data);
  return bundle + "MCPB_SIG_V1" + little_endian_bytes(pkcs7.size(), 4) + pkcs7 + "MCPB_SIG_END";
}

}  // namespace fairlead::packages::test
