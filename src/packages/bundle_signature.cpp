#include "packages/bundle_signature.hpp"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <array>
#include <chrono>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>

#include "base/rfc3339.hpp"
#include "packages/hexadecimal.hpp"

namespace fairlead::packages {

namespace {

constexpr std::string_view kBegin = "MCPB_SIG_V1";
constexpr std::string_view kEnd = "MCPB_SIG_END";
constexpr std::size_t kSizeBytes = 4;
constexpr std::size_t kMaxSignatureBytes = 1u << 20;  // max_signature_bytes

template <auto release>
struct Release {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};
template <class T, auto release>
using Owned = std::unique_ptr<T, Release<release>>;
using Cms = Owned<CMS_ContentInfo, CMS_ContentInfo_free>;
using Bio = Owned<BIO, BIO_free_all>;
using Store = Owned<X509_STORE, X509_STORE_free>;
using StoreContext = Owned<X509_STORE_CTX, X509_STORE_CTX_free>;

void release_certificates(STACK_OF(X509) * certificates) {
  sk_X509_pop_free(certificates, X509_free);
}
using Certificates = Owned<STACK_OF(X509), release_certificates>;
void release_list(STACK_OF(X509) * certificates) {
  sk_X509_free(certificates);
}
using CertificateList = Owned<STACK_OF(X509), release_list>;  // does not own the certificates

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// ---- certificates ----------------------------------------------------------------------------------------

std::string common_name(const X509_NAME* name) {
  const int index = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (index < 0) return {};
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)));
  if (size < 0) return {};
  std::string result(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
  OPENSSL_free(text);
  return result;
}

std::string time_text(const ASN1_TIME* time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return {};
  return format_rfc3339(
      std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::seconds(::timegm(&fields))));
}

std::string fingerprint_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) return {};
  return hexadecimal(std::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

// Whether the issuer of the certificate is the certificate itself.
bool is_self_signed(X509* certificate) {
  return X509_self_signed(certificate, 1) == 1;
}

bool is_valid_now(const X509* certificate) {
  return X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0 &&
         X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0;
}

bool may_sign_code(X509* certificate) {
  return (X509_get_extension_flags(certificate) & EXFLAG_XKUSAGE) != 0 &&
         (X509_get_extended_key_usage(certificate) & XKU_CODE_SIGN) != 0;
}

void describe(Signature& signature, const X509* certificate) {
  signature.publisher = common_name(X509_get_subject_name(certificate));
  signature.issuer = common_name(X509_get_issuer_name(certificate));
  signature.valid_from = time_text(X509_get0_notBefore(certificate));
  signature.valid_until = time_text(X509_get0_notAfter(certificate));
  signature.fingerprint = fingerprint_of(certificate);
}

// ---- verification ----------------------------------------------------------------------------------------

Store trusted_issuers(const std::string& directory) {
  Store store(X509_STORE_new());
  if (!store) return store;
  const int loaded = directory.empty() ? X509_STORE_set_default_paths(store.get())
                                       : X509_STORE_load_path(store.get(), directory.c_str());
  ERR_clear_error();
  return loaded == 1 ? std::move(store) : nullptr;
}

// Why the certificate is not trusted; empty if it is.
std::string chain_problem(X509* certificate, STACK_OF(X509) * others, const std::string& directory) {
  const Store store = trusted_issuers(directory);
  const StoreContext context(X509_STORE_CTX_new());
  if (!store || !context || X509_STORE_CTX_init(context.get(), store.get(), certificate, others) != 1)
    return "the certificates of trusted issuers cannot be read";
  X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_ANY);
  const int verified = X509_verify_cert(context.get());
  ERR_clear_error();
  if (verified != 1)
    return "the certificate is not trusted: " +
           std::string(X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
  return may_sign_code(certificate) ? std::string() : "the certificate is not for signing code";
}

Cms parse_cms(std::string_view der) {
  const auto* begin = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* end = begin;
  Cms cms(d2i_CMS_ContentInfo(nullptr, &end, static_cast<long>(der.size())));
  ERR_clear_error();
  return cms && end == begin + der.size() ? std::move(cms) : nullptr;
}

// Reads `content`. The filter is there because CMS_verify() leaks the copy that it makes of a memory BIO.
Bio content_reader(std::string_view content) {
  Bio filter(BIO_new(BIO_f_null()));
  BIO* const memory = BIO_new_mem_buf(content.data(), static_cast<int>(content.size()));
  if (!filter || !memory) {
    BIO_free(memory);
    return nullptr;
  }
  BIO_push(filter.get(), memory);
  return filter;
}

// Whether the signature is that of the signer's certificate over `content`.
bool matches(CMS_ContentInfo* cms, std::string_view content) {
  if (content.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return false;
  const Bio data = content_reader(content);
  const int verified = data ? CMS_verify(cms, nullptr, nullptr, data.get(), nullptr,
                                         CMS_DETACHED | CMS_BINARY | CMS_NO_SIGNER_CERT_VERIFY)
                            : 0;
  ERR_clear_error();
  return verified == 1;
}

// The certificate of the only signer; null if there is not exactly one.
X509* signer_of(CMS_ContentInfo* cms) {
  const CertificateList signers(CMS_get0_signers(cms));
  return signers && sk_X509_num(signers.get()) == 1 ? sk_X509_value(signers.get(), 0) : nullptr;
}

Signature failed(std::string problem) {
  Signature signature;
  signature.problem = std::move(problem);
  return signature;
}

}  // namespace

std::string_view to_string(Signature::State state) noexcept {
  switch (state) {
    case Signature::State::none: return "unsigned";
    case Signature::State::self_signed: return "self-signed";
    case Signature::State::trusted: return "signed";
  }
  return "unsigned";
}

SignedBytes split_signature(std::string_view bundle) {
  SignedBytes parts{bundle, {}, {}};
  if (!bundle.ends_with(kEnd)) return parts;
  const std::string_view before_end = bundle.substr(0, bundle.size() - kEnd.size());
  const std::size_t begin = before_end.rfind(kBegin);
  if (begin == std::string_view::npos) return parts;
  parts.content = bundle.substr(0, begin);
  parts.block = bundle.substr(begin);
  const std::string_view frame = before_end.substr(begin + kBegin.size());
  if (frame.size() < kSizeBytes) return parts;
  const std::string_view pkcs7 = frame.substr(kSizeBytes);
  if (little_endian(frame.substr(0, kSizeBytes)) == pkcs7.size()) parts.pkcs7 = pkcs7;
  return parts;
}

Signature verify_signature(const SignedBytes& bytes, const std::string& certificates_directory) {
  if (bytes.block.empty()) return {};
  if (bytes.pkcs7.empty() || bytes.pkcs7.size() > kMaxSignatureBytes)
    return failed("the signature is damaged");
  const Cms cms = parse_cms(bytes.pkcs7);
  if (!cms || OBJ_obj2nid(CMS_get0_type(cms.get())) != NID_pkcs7_signed)
    return failed("the signature is not a PKCS#7 signature");
  if (!matches(cms.get(), bytes.content))
    return failed("the signature does not belong to this content: the bundle was changed after signing");
  X509* const certificate = signer_of(cms.get());
  if (!certificate) return failed("the bundle does not have exactly one signature");
  Signature signature;
  describe(signature, certificate);
  const Certificates others(CMS_get1_certs(cms.get()));
  signature.problem = chain_problem(certificate, others.get(), certificates_directory);
  if (signature.problem.empty()) {
    signature.state = Signature::State::trusted;
  } else if (is_self_signed(certificate) && is_valid_now(certificate)) {
    signature.state = Signature::State::self_signed;
    signature.problem.clear();
  }
  return signature;
}

}  // namespace fairlead::packages
