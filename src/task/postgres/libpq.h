#pragma once

#include <memory>
#include <string>

namespace duet::task::postgres {

/// libpq, opened when a `store` asks for it: a program that is linked to it pays for it at each start, and nobody needs
/// its header to build ours. What is declared here under libpq's own names is its stable interface (libpq.so.5).
///
/// A call is `libpq().PQfinish(connection)`; a function that is missing is added to libpq_functions.h. It stays open
/// until the process ends. Nobody outside this folder knows of it.
struct Libpq {
  struct PGconn;
  struct PGresult;
  struct PGnotify {
    char* relname;
    int be_pid;
    char* extra;
    PGnotify* next;
  };
  struct PQconninfoOption {
    char* keyword;
    char* envvar;
    char* compiled;
    char* val;
    char* label;
    char* dispchar;
    int dispsize;
  };
  using Oid = unsigned int;
  using PQnoticeReceiver = void (*)(void*, const PGresult*);

  enum ConnStatusType : int { CONNECTION_OK = 0, CONNECTION_BAD = 1 };
  enum PostgresPollingStatusType : int {
    PGRES_POLLING_FAILED = 0,
    PGRES_POLLING_READING = 1,
    PGRES_POLLING_WRITING = 2,
    PGRES_POLLING_OK = 3,
  };
  enum ExecStatusType : int { PGRES_EMPTY_QUERY = 0, PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2 };
  enum PGVerbosity : int { PQERRORS_DEFAULT = 1, PQERRORS_VERBOSE = 2 };
  // Fields of an error.
  static constexpr int severity_field = 'V';  // never in another language
  static constexpr int sqlstate_field = 'C';
  static constexpr int message_field = 'M';
  static constexpr int hint_field = 'H';

#define DUET_LIBPQ(name, result, parameters) result(*name) parameters = nullptr;
#include "task/postgres/libpq_functions.h"
#undef DUET_LIBPQ
  int (*SSL_pending)(const void*) = nullptr;  // of the OpenSSL that it brings; null if it brings none
};

/// Throws std::runtime_error if it is not there (`install libpq5`), or lacks something. For any thread.
const Libpq& libpq();
/// The same from a library of that name, each time anew.
Libpq open_libpq(const char* library_name);

struct LibpqDelete {
  void operator()(Libpq::PGconn* connection) const { libpq().PQfinish(connection); }
  void operator()(Libpq::PGresult* result) const { libpq().PQclear(result); }
  void operator()(Libpq::PQconninfoOption* options) const { libpq().PQconninfoFree(options); }
  void operator()(Libpq::PGnotify* notification) const { libpq().PQfreemem(notification); }
};
/// A connection is used by one thread at a time, whichever.
using PgConnection = std::unique_ptr<Libpq::PGconn, LibpqDelete>;
using PgResult = std::unique_ptr<Libpq::PGresult, LibpqDelete>;
using PgOptions = std::unique_ptr<Libpq::PQconninfoOption, LibpqDelete>;
using PgNotification = std::unique_ptr<Libpq::PGnotify, LibpqDelete>;

/// The first line of what libpq says, without what stands around it.
std::string first_line(const char* text);

}  // namespace duet::task::postgres
