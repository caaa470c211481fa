// Ed25519 (RFC 8032) by OpenSSL's libcrypto, which is opened at run time: Trireme itself links none. Keys are PEM
// files: openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out public.pem
#pragma once
#include <string>
#include <string_view>

#include "receipt/receipt.hpp"

namespace trireme::cli {

Result<receipts::Signature> sign(const std::string& key_file, std::string_view text);
Result<bool> verify(const receipts::Signature& signature, std::string_view text);

// 64 hex digits: of a public key's file, or those themselves.
Result<std::string> public_key(const std::string& file_or_digits);

}  // namespace trireme::cli
