#include "duet/transport/tls_failure.h"

#include <algorithm>
#include <iterator>

namespace duet::transport {
namespace {

struct NamedAlert {
  int number;
  const char* name;
};

constexpr NamedAlert named_alerts[] = {
    {10, "unexpected_message"},
    {20, "bad_record_mac"},
    {22, "record_overflow"},
    {40, "handshake_failure"},
    {42, "bad_certificate"},
    {43, "unsupported_certificate"},
    {44, "certificate_revoked"},
    {45, "certificate_expired"},
    {46, "certificate_unknown"},
    {47, "illegal_parameter"},
    {48, "unknown_ca"},
    {49, "access_denied"},
    {50, "decode_error"},
    {51, "decrypt_error"},
    {70, "protocol_version"},
    {71, "insufficient_security"},
    {80, "internal_error"},
    {86, "inappropriate_fallback"},
    {90, "user_canceled"},
    {109, "missing_extension"},
    {110, "unsupported_extension"},
    {112, "unrecognized_name"},
    {116, "certificate_required"},
    {120, "no_application_protocol"},
};

}  // namespace

std::string alert_name(int alert) {
  const auto* const found = std::ranges::find(named_alerts, alert, &NamedAlert::number);
  return found == std::end(named_alerts) ? "alert " + std::to_string(alert) : found->name;
}

}  // namespace duet::transport
