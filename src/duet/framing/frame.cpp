#include "duet/framing/frame.h"

namespace duet::framing {

std::string_view reason_of(Fault fault) {
  switch (fault) {
    case Fault::malformed_header:
      return "malformed-header";
    case Fault::length_mismatch:
      return "content-length-mismatch";
    case Fault::oversize:
      return "oversize";
    case Fault::header_too_large:
      return "header-too-large";
    case Fault::unsupported_content_type:
      return "unsupported-content-type";
    case Fault::bad_charset:
      return "bad-charset";
    case Fault::protocol_error:
      return "protocol-error";
    case Fault::binary_message:
      return "binary-message";
    case Fault::not_utf8:
      return "not-utf8";
  }
  return "malformed-header";
}

}  // namespace duet::framing
