#include "app/words/sha256.h"

#include <array>
#include <cstdint>

#include <nettle/sha2.h>

namespace duet::app {

std::string sha256(std::string_view bytes) {
  sha256_ctx context;
  sha256_init(&context);
  // The library's bytes are unsigned; these are the same.
  sha256_update(&context, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&context, digest.size(), digest.data());
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

}  // namespace duet::app
