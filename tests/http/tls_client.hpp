// TlsClient: a blocking TLS client, directly on OpenSSL.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string>
#include <string_view>

#include "http/certificate.hpp"
#include "http/raw_client.hpp"

namespace fairlead::test {

class TlsClient {
 public:
  explicit TlsClient(const std::string& address, const std::string& protocol = "", int version = 0)
      : socket_(address), context_(SSL_CTX_new(TLS_client_method())), session_(SSL_new(context_.get())) {
    if (version != 0) SSL_set_max_proto_version(session_.get(), version);
    if (version != 0) SSL_set_security_level(session_.get(), 0);
    if (!protocol.empty()) {
      const std::string list = static_cast<char>(protocol.size()) + protocol;
      SSL_set_alpn_protos(session_.get(), reinterpret_cast<const unsigned char*>(list.data()),
                          static_cast<unsigned>(list.size()));
    }
    SSL_set_fd(session_.get(), socket_.fd());
    connected_ = SSL_connect(session_.get()) == 1;
  }
  bool connected() const { return connected_; }
  std::string subject() const {
    const Owned<X509, X509_free> certificate(SSL_get1_peer_certificate(session_.get()));
    char text[100] = {};
    if (certificate)
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, text, sizeof text);
    return text;
  }
  // Returns the number of certificates that the server has sent, including its own.
  int chain_size() const { return sk_X509_num(SSL_get_peer_cert_chain(session_.get())); }
  std::string protocol() const {
    const unsigned char* text = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(session_.get(), &text, &size);
    return std::string(reinterpret_cast<const char*>(text), size);
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      std::size_t written = 0;
      if (SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &written) != 1) return false;
      bytes.remove_prefix(written);
    }
    return true;
  }
  std::string read() {
    char piece[20000];
    std::size_t bytes_read = 0;
    const bool some = SSL_read_ex(session_.get(), piece, sizeof piece, &bytes_read) == 1;
    return some ? std::string(piece, bytes_read) : std::string();
  }
  // Returns `size` bytes of a response body; fewer if the connection ends before that.
  std::string body(std::size_t size) {
    std::string all;
    std::size_t head = std::string::npos;
    while (head == std::string::npos || all.size() < head + 4 + size) {
      const std::string more = read();
      if (more.empty()) break;
      all += more;
      head = all.find("\r\n\r\n");
    }
    return head == std::string::npos ? all : all.substr(head + 4);
  }
  // Returns whether the server has sent close_notify.
  bool received_close_notify() {
    char c = 0;
    std::size_t bytes_read = 0;
    const int result = SSL_read_ex(session_.get(), &c, 1, &bytes_read);
    return SSL_get_error(session_.get(), result) == SSL_ERROR_ZERO_RETURN;
  }

 private:
  RawClient socket_;
  Owned<SSL_CTX, SSL_CTX_free> context_;
  Owned<SSL, SSL_free> session_;
  bool connected_ = false;
};

}  // namespace fairlead::test
