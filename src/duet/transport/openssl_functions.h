// The functions of OpenSSL 3 that we call, one a line. Included by openssl.h and openssl.cpp with DUET_OPENSSL defined,
// and by nobody else. What OpenSSL has as a macro (SSL_CTX_set_min_proto_version) is called by what is behind it.

DUET_OPENSSL(ERR_clear_error)
DUET_OPENSSL(ERR_get_error)
DUET_OPENSSL(ERR_peek_last_error)
DUET_OPENSSL(ERR_reason_error_string)
