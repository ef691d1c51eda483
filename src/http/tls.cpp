#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/read_file.hpp"
#include "http/byte_stream.hpp"

namespace fairlead::http {

namespace {

constexpr std::size_t kMaxTlsFileBytes = 1u << 20;
constexpr std::size_t kMaxRecordBytes = 16u << 10;  // maximum payload of one TLS record
constexpr std::array<unsigned char, 9> kAlpnProtocols = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

struct FreeContext {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
struct FreeSession {
  void operator()(SSL* session) const noexcept { SSL_free(session); }
};

// Returns the reason of the last failure of OpenSSL on this thread, and clears OpenSSL's error queue. If the
// queue has a system error, returns that one: the errors that OpenSSL queues after a system error only repeat
// that it occurred.
std::string last_openssl_error() {
  unsigned long code = 0;
  while (!ERR_SYSTEM_ERROR(code)) {
    const unsigned long next = ERR_get_error();
    if (next == 0) break;
    code = next;
  }
  ERR_clear_error();
  if (code == 0) return "unknown error";
  if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
  const char* reason = ERR_reason_error_string(code);
  return reason ? reason : "error " + std::to_string(code);
}

int select_alpn_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                         const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, out_size, kAlpnProtocols.data(), kAlpnProtocols.size(),
                                          offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

bool is_ip_address(const std::string& host) {
  std::array<unsigned char, 16> address;
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

}  // namespace

class TlsContext {
 public:
  TlsContext(SSL_CTX* context, bool server) : context_(context), is_server_(server) {}
  SSL_CTX* get() const noexcept { return context_.get(); }
  bool is_server() const noexcept { return is_server_; }

 private:
  std::unique_ptr<SSL_CTX, FreeContext> context_;
  bool is_server_;
};

namespace {

Result<std::shared_ptr<TlsContext>> make_context(bool server) {
  SSL_CTX* context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  if (!context) return Error(ErrorKind::resource_exhausted, "cannot start TLS: " + last_openssl_error());
  auto context_ptr = std::make_shared<TlsContext>(context, server);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // A write may be partial, and may be repeated with the data at another address. Idle sessions release their
  // buffers.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  return context_ptr;
}

class TlsStream final : public ByteStream {
 public:
  TlsStream(Loop& loop, Descriptor socket, std::string remote, std::shared_ptr<TlsContext> context,
            SSL* session, std::string host)
      : loop_(loop),
        socket_(std::move(socket)),
        remote_(std::move(remote)),
        context_(std::move(context)),
        session_(session),
        host_(std::move(host)) {}
  ~TlsStream() override { *alive_ = false; }

  IoResult read(std::span<char> into) override {
    if (into.empty()) return IoResult{};
    std::size_t bytes_read = 0;
    ERR_clear_error();
    const bool in_handshake = !SSL_is_init_finished(session_.get());
    const int result = SSL_read_ex(session_.get(), into.data(), into.size(), &bytes_read);
    const IoResult io = result == 1 ? IoResult{IoStatus::ok, bytes_read, nullptr}
                                    : result_of_failure(result, read_waits_for_, "cannot read from ");
    if (in_handshake && SSL_is_init_finished(session_.get())) wake_writer_after_handshake();
    return io;
  }

  IoResult write(std::span<const iovec> parts) override {
    std::array<char, kMaxRecordBytes> gathered;
    const std::span<const char> next = next_record(parts, gathered);
    if (next.empty()) return IoResult{};
    std::size_t bytes_written = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(session_.get(), next.data(), next.size(), &bytes_written);
    if (result == 1) return IoResult{IoStatus::ok, bytes_written, nullptr};
    return result_of_failure(result, write_waits_for_, "cannot write to ");
  }

  void when_readable(Descriptor::ReadyCallback ready) override {
    on_readable_ = std::move(ready);
    if (SSL_pending(session_.get()) >
        0) {  // data is already decrypted, so the socket may not become readable
      loop_.post([this, alive = alive_] {
        if (*alive) invoke(on_readable_);
      });
    } else {
      wait_for_socket(read_waits_for_);
    }
  }
  void when_writable(Descriptor::ReadyCallback ready) override {
    on_writable_ = std::move(ready);
    wait_for_socket(write_waits_for_);
  }
  bool waiting_to_read() const noexcept override { return static_cast<bool>(on_readable_); }
  bool waiting_to_write() const noexcept override { return static_cast<bool>(on_writable_); }

  void shutdown_output() override {
    ERR_clear_error();
    if (!broken_ && SSL_is_init_finished(session_.get())) SSL_shutdown(session_.get());
    ERR_clear_error();
    ::shutdown(socket_.fd(), SHUT_WR);
  }
  void close() override {
    on_readable_ = nullptr;
    on_writable_ = nullptr;
    socket_.close();
  }
  std::string remote_name() const override { return remote_; }

 private:
  // What an operation that returned `again` waits for: the socket becomes readable (input) or writable
  // (output).
  enum class WaitsFor : std::uint8_t { input, output };

  // Returns the data of the next TLS record. Gathers several parts in `gathered` until the record is full, so
  // that small parts need only one write.
  static std::span<const char> next_record(std::span<const iovec> parts, std::span<char> gathered) {
    while (!parts.empty() && parts.front().iov_len == 0) parts = parts.subspan(1);
    if (parts.empty()) return {};
    if (parts.size() == 1 || parts.front().iov_len >= kMaxRecordBytes) {
      return {static_cast<const char*>(parts.front().iov_base), parts.front().iov_len};
    }
    std::size_t size = 0;
    for (const iovec& part : parts) {
      const std::size_t fits = std::min(part.iov_len, gathered.size() - size);
      if (fits > 0) std::memcpy(gathered.data() + size, part.iov_base, fits);
      size += fits;
      if (size == gathered.size()) break;
    }
    return gathered.first(size);
  }

  // Converts a failed OpenSSL operation to an IoResult, and stores in `waits_for` what a repetition has to
  // wait for.
  IoResult result_of_failure(int result, WaitsFor& waits_for, std::string_view action) {
    const int os_error = errno;
    switch (SSL_get_error(session_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        socket_.input_drained();
        waits_for = WaitsFor::input;
        return IoResult{IoStatus::again, 0, nullptr};
      case SSL_ERROR_WANT_WRITE: waits_for = WaitsFor::output; return IoResult{IoStatus::again, 0, nullptr};
      case SSL_ERROR_ZERO_RETURN: return IoResult{IoStatus::ended, 0, nullptr};
      case SSL_ERROR_SYSCALL:
        broken_ = true;
        if (os_error == 0) return IoResult{IoStatus::ended, 0, nullptr};
        return failed(Error::from_errno(ErrorKind::io, std::string(action) + remote_, os_error));
      default: break;
    }
    broken_ = true;
    return failed(tls_error(action));
  }

  Error tls_error(std::string_view action) const {
    const bool truncated = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    const long verify_result = SSL_get_verify_result(session_.get());
    if (!context_->is_server() && verify_result != X509_V_OK && !SSL_is_init_finished(session_.get())) {
      ERR_clear_error();
      return Error(ErrorKind::connection_failed, "the certificate of " + host_ + " is not accepted: " +
                                                     X509_verify_cert_error_string(verify_result));
    }
    const std::string problem = last_openssl_error();
    if (!SSL_is_init_finished(session_.get())) {
      return Error(ErrorKind::connection_failed, "TLS handshake with " + remote_ + " failed: " + problem);
    }
    if (truncated)
      return Error(ErrorKind::closed, remote_ + " closed the connection without TLS close_notify");
    return Error(ErrorKind::io, std::string(action) + remote_ + ": " + problem);
  }

  // Waits until the socket is readable or writable. A read may have to wait until the socket is writable, and
  // a write until it is readable, because both perform the handshake.
  void wait_for_socket(WaitsFor waits_for) {
    if (waits_for == WaitsFor::input) {
      if (!socket_.waiting_to_read()) socket_.when_readable([this] { on_socket_ready(WaitsFor::input); });
    } else {
      if (!socket_.waiting_to_write()) socket_.when_writable([this] { on_socket_ready(WaitsFor::output); });
    }
  }

  // Called when a read has completed the handshake. A write that waits for input of the handshake would
  // otherwise wait forever, so it now waits until the socket is writable.
  void wake_writer_after_handshake() {
    write_waits_for_ = WaitsFor::output;
    if (on_writable_) wait_for_socket(write_waits_for_);
  }

  void on_socket_ready(WaitsFor waits_for) {
    const std::shared_ptr<bool> alive = alive_;
    if (write_waits_for_ == waits_for) invoke(on_writable_);
    if (*alive && read_waits_for_ == waits_for) invoke(on_readable_);
    if (!*alive || !socket_.is_open()) return;
    // If one callback has completed the handshake, the operation of the other callback may now wait for
    // something else.
    if (on_readable_) wait_for_socket(read_waits_for_);
    if (on_writable_) wait_for_socket(write_waits_for_);
  }

  static void invoke(Descriptor::ReadyCallback& slot) {
    if (!slot) return;
    const auto due = std::make_unique<Descriptor::ReadyCallback>(std::move(slot));
    slot = nullptr;
    (*due)();
  }

  Loop& loop_;
  Descriptor socket_;
  std::string remote_;
  std::shared_ptr<TlsContext> context_;
  std::unique_ptr<SSL, FreeSession> session_;
  std::string host_;
  WaitsFor read_waits_for_ = WaitsFor::input;
  WaitsFor write_waits_for_ = WaitsFor::output;
  Descriptor::ReadyCallback on_readable_;
  Descriptor::ReadyCallback on_writable_;
  bool broken_ = false;  // the session has failed, so SSL_shutdown() must not be called
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // false after the destructor, for callbacks
};

// Makes the session verify that the certificate is valid for `host`, and send `host` as SNI unless it is an
// IP address.
Result<void> set_expected_host(SSL* session, const std::string& host) {
  X509_VERIFY_PARAM* expected = SSL_get0_param(session);
  X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool numeric = is_ip_address(host);
  const int set = numeric ? X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str())
                          : X509_VERIFY_PARAM_set1_host(expected, host.c_str(), host.size());
  const bool sni_set = numeric || SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                           const_cast<char*>(host.c_str())) == 1;
  if (set != 1 || !sni_set) {
    return Error(ErrorKind::connection_failed,
                 "`" + host + "` is not a valid name of a TLS server: " + last_openssl_error());
  }
  return {};
}

// ---- files -----------------------------------------------------------------------------------------------

struct FreeBio {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
using BioPtr = std::unique_ptr<BIO, FreeBio>;
using CertificatePtr = std::unique_ptr<X509, FreeCertificate>;

Result<std::string> read_tls_file(const std::string& path) {
  return read_regular_file(path, FileLimit{"max_tls_file_bytes", kMaxTlsFileBytes});
}

BioPtr open_pem(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Passphrase callback that rejects encrypted files. Without it, OpenSSL would prompt for the passphrase on
// the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

// Configures the certificates in `pem`: the first one is that of the server, the following ones are its
// chain. Returns false if a certificate is invalid.
bool use_certificates(SSL_CTX* context, const std::string& pem) {
  const BioPtr in = open_pem(pem);
  const CertificatePtr own(in ? PEM_read_bio_X509_AUX(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!own || SSL_CTX_use_certificate(context, own.get()) != 1) return false;
  while (X509* const next = PEM_read_bio_X509(in.get(), nullptr, no_passphrase, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, next) == 1) continue;
    X509_free(next);
    return false;
  }
  const bool complete = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (complete) ERR_clear_error();
  return complete;
}

bool use_key(SSL_CTX* context, const std::string& pem) {
  const BioPtr in = open_pem(pem);
  const std::unique_ptr<EVP_PKEY, FreeKey> key(
      in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  return key && SSL_CTX_use_PrivateKey(context, key.get()) == 1 && SSL_CTX_check_private_key(context) == 1;
}

}  // namespace

Result<std::shared_ptr<TlsContext>> make_server_tls_context(const std::string& certificate_file,
                                                            const std::string& key_file) {
  ERR_clear_error();
  Result<std::shared_ptr<TlsContext>> context_ptr = make_context(true);
  if (!context_ptr) return context_ptr;
  SSL_CTX* context = (*context_ptr)->get();
  SSL_CTX_set_alpn_select_cb(context, select_alpn_protocol, nullptr);
  const Result<std::string> certificate = read_tls_file(certificate_file);
  if (!certificate || !use_certificates(context, *certificate)) {
    return Error(ErrorKind::validation,
                 "cannot use the certificate " + certificate_file + ": " +
                     (certificate ? last_openssl_error() : certificate.error().message()));
  }
  const Result<std::string> key = read_tls_file(key_file);
  if (!key || !use_key(context, *key)) {
    return Error(ErrorKind::validation, "cannot use the key " + key_file + ": " +
                                            (key ? last_openssl_error() : key.error().message()));
  }
  return context_ptr;
}

Result<std::shared_ptr<TlsContext>> make_client_tls_context(const std::string& ca_file, bool verify) {
  ERR_clear_error();
  Result<std::shared_ptr<TlsContext>> context_ptr = make_context(false);
  if (!context_ptr) return context_ptr;
  SSL_CTX* context = (*context_ptr)->get();
  SSL_CTX_set_alpn_protos(context, kAlpnProtocols.data(), kAlpnProtocols.size());
  SSL_CTX_set_default_verify_paths(context);
  if (!ca_file.empty() && SSL_CTX_load_verify_file(context, ca_file.c_str()) != 1) {
    return Error(ErrorKind::validation,
                 "cannot use the authorities in " + ca_file + ": " + last_openssl_error());
  }
  ERR_clear_error();
  SSL_CTX_set_verify(context, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  return context_ptr;
}

Result<std::unique_ptr<ByteStream>> make_tls_stream(Loop& loop, UniqueFd socket,
                                                    std::shared_ptr<TlsContext> context,
                                                    const std::string& host) {
  ERR_clear_error();
  std::string remote = remote_address_of(socket.get());
  const int fd = socket.get();
  Result<Descriptor> descriptor = Descriptor::adopt(loop, std::move(socket));
  if (!descriptor) return descriptor.error();
  SSL* session = SSL_new(context->get());
  if (!session) return Error(ErrorKind::resource_exhausted, "cannot start TLS: " + last_openssl_error());
  const bool server = context->is_server();
  auto stream = std::make_unique<TlsStream>(loop, std::move(*descriptor), std::move(remote),
                                            std::move(context), session, host);
  if (SSL_set_fd(session, fd) != 1) {
    return Error(ErrorKind::resource_exhausted, "cannot start TLS: " + last_openssl_error());
  }
  if (server) {
    SSL_set_accept_state(session);
  } else {
    SSL_set_connect_state(session);
    Result<void> expected = host.empty() ? Result<void>() : set_expected_host(session, host);
    if (!expected) return expected.error();
  }
  return std::unique_ptr<ByteStream>(std::move(stream));
}

}  // namespace fairlead::http
