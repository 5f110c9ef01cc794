#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "app/certificates/x509.h"
#include "duet/base/clock.h"

namespace duet::app {

/// How long certificates are good. Browsers take a server's for 398 days at most.
inline constexpr std::chrono::days life_of_authority{3652};  // ten years
inline constexpr std::chrono::days life_of_server{397};
inline constexpr std::chrono::days life_of_client{365};
/// They begin a little earlier, for clocks that are slow.
inline constexpr std::chrono::hours before_now{1};

struct Life {
  base::UtcTime begins;
  base::UtcTime ends;
};
Life life_from(base::UtcTime now, std::chrono::days days);

/// Makes certificates, each with a new key (EC P-256; browsers take no Ed25519) and a random serial number of 128 bits,
/// signed with SHA-256. Names must have been checked. Nothing is good for longer than the CA that signs it. No files,
/// no clock. Throws std::runtime_error with what OpenSSL says.
KeyPair make_authority(const std::string& machine, Life life);
KeyPair make_server(const KeyPair& authority, const std::vector<std::string>& hosts, Life life);
KeyPair make_client(const KeyPair& authority, const std::string& name, std::string_view role, Life life);

/// For browsers: key, certificate and the CA's, under a password.
std::string pkcs12_of(const KeyPair& client, const std::vector<X509Owner>& authorities, const std::string& name,
                      const std::string& password);

}  // namespace duet::app
