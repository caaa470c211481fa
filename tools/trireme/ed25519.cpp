#include "ed25519.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>

#include "files.hpp"
#include "support/hash.hpp"

namespace trireme::cli {
namespace {

constexpr int ed25519_id = 1087;  // NID_ED25519
constexpr std::size_t key_bytes = 32, signature_bytes = 64;

// The functions that are used, which OpenSSL 1.1.1 and 3 have.
struct Libcrypto {
  void* (*BIO_new_mem_buf)(const void*, int);
  int (*BIO_free)(void*);
  void* (*PEM_read_bio_PrivateKey)(void*, void**, int (*)(char*, int, int, void*), void*);
  void* (*PEM_read_bio_PUBKEY)(void*, void**, int (*)(char*, int, int, void*), void*);
  void* (*EVP_PKEY_new_raw_public_key)(int, void*, const unsigned char*, std::size_t);
  int (*EVP_PKEY_get_raw_public_key)(const void*, unsigned char*, std::size_t*);
  void (*EVP_PKEY_free)(void*);
  void* (*EVP_MD_CTX_new)();
  void (*EVP_MD_CTX_free)(void*);
  int (*EVP_DigestSignInit)(void*, void**, const void*, void*, void*);
  int (*EVP_DigestSign)(void*, unsigned char*, std::size_t*, const unsigned char*, std::size_t);
  int (*EVP_DigestVerifyInit)(void*, void**, const void*, void*, void*);
  int (*EVP_DigestVerify)(void*, const unsigned char*, std::size_t, const unsigned char*, std::size_t);
};

Result<Libcrypto> open_libcrypto() {
  void* handle = nullptr;
  for (const char* name : {"libcrypto.so.3", "libcrypto.so.1.1"})
    if (!handle) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return Error{Code::NoDevice,
                 "signatures want OpenSSL's libcrypto.so.3 (or .1.1), which is not here; Debian's package is libssl3"};
  Libcrypto made;
  const char* missing = nullptr;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (!function) missing = name;
  };
#define TRIREME_FIND(name) find(made.name, #name)
  TRIREME_FIND(BIO_new_mem_buf);
  TRIREME_FIND(BIO_free);
  TRIREME_FIND(PEM_read_bio_PrivateKey);
  TRIREME_FIND(PEM_read_bio_PUBKEY);
  TRIREME_FIND(EVP_PKEY_new_raw_public_key);
  TRIREME_FIND(EVP_PKEY_get_raw_public_key);
  TRIREME_FIND(EVP_PKEY_free);
  TRIREME_FIND(EVP_MD_CTX_new);
  TRIREME_FIND(EVP_MD_CTX_free);
  TRIREME_FIND(EVP_DigestSignInit);
  TRIREME_FIND(EVP_DigestSign);
  TRIREME_FIND(EVP_DigestVerifyInit);
  TRIREME_FIND(EVP_DigestVerify);
#undef TRIREME_FIND
  if (missing) return Error{Code::NoDevice, fmt::format("this libcrypto has no {}; 1.1.1 or later is wanted", missing)};
  return made;
}

using Owned = std::unique_ptr<void, void (*)(void*)>;

int no_password(char*, int, int, void*) { return 0; }  // rather than asking the terminal

Result<Owned> key_in(const Libcrypto& crypto, const std::string& path, bool is_private) {
  TRIREME_TRY(pem, read_file(path));
  void* bio = crypto.BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  void* key = bio ? (is_private ? crypto.PEM_read_bio_PrivateKey : crypto.PEM_read_bio_PUBKEY)(bio, nullptr,
                                                                                               no_password, nullptr)
                  : nullptr;
  if (bio) crypto.BIO_free(bio);
  if (!key)
    return Error{Code::InvalidArgument,
                 fmt::format("{}: no {} key in PEM without a password", path, is_private ? "private" : "public")};
  return Owned(key, crypto.EVP_PKEY_free);
}

Result<std::string> digits_of(const Libcrypto& crypto, const Owned& key, const std::string& path) {
  std::array<unsigned char, key_bytes> raw;
  std::size_t bytes = raw.size();
  if (crypto.EVP_PKEY_get_raw_public_key(key.get(), raw.data(), &bytes) != 1 || bytes != raw.size())
    return Error{Code::InvalidArgument, path + ": no key of Ed25519"};
  return hex(raw);
}

template <std::size_t bytes>
std::array<unsigned char, bytes> bytes_of(const std::string& digits) {
  std::array<unsigned char, bytes> made;
  for (std::size_t k = 0; k < bytes; ++k)
    made[k] = static_cast<unsigned char>(std::stoi(digits.substr(2 * k, 2), nullptr, 16));
  return made;
}

const unsigned char* unsigned_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

Result<receipts::Signature> sign(const std::string& key_file, std::string_view text) {
  TRIREME_TRY(crypto, open_libcrypto());
  TRIREME_TRY(key, key_in(crypto, key_file, true));
  TRIREME_TRY(digits, digits_of(crypto, key, key_file));
  const Owned context(crypto.EVP_MD_CTX_new(), crypto.EVP_MD_CTX_free);
  std::array<unsigned char, signature_bytes> value;
  std::size_t bytes = value.size();
  if (crypto.EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      crypto.EVP_DigestSign(context.get(), value.data(), &bytes, unsigned_of(text), text.size()) != 1 ||
      bytes != value.size())
    return Error{Code::InvalidArgument, key_file + ": no key of Ed25519"};
  return receipts::Signature{digits, hex(value)};
}

Result<bool> verify(const receipts::Signature& signature, std::string_view text) {
  TRIREME_TRY(crypto, open_libcrypto());
  const auto raw = bytes_of<key_bytes>(signature.key);
  const Owned key(crypto.EVP_PKEY_new_raw_public_key(ed25519_id, nullptr, raw.data(), raw.size()),
                  crypto.EVP_PKEY_free);
  if (!key) return false;
  const auto value = bytes_of<signature_bytes>(signature.value);
  const Owned context(crypto.EVP_MD_CTX_new(), crypto.EVP_MD_CTX_free);
  return crypto.EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         crypto.EVP_DigestVerify(context.get(), value.data(), value.size(), unsigned_of(text), text.size()) == 1;
}

Result<std::string> public_key(const std::string& file_or_digits) {
  if (file_or_digits.size() == 2 * key_bytes &&
      file_or_digits.find_first_not_of("0123456789abcdef") == std::string::npos)
    return file_or_digits;
  TRIREME_TRY(crypto, open_libcrypto());
  TRIREME_TRY(key, key_in(crypto, file_or_digits, false));
  return digits_of(crypto, key, file_or_digits);
}

}  // namespace trireme::cli
