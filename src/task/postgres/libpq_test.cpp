#include "task/postgres/libpq.h"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

// What we declare is compared with libpq's header where that is installed, by the compiler.
#if __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#define DUET_HAS_LIBPQ_HEADER 1
#elif __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#define DUET_HAS_LIBPQ_HEADER 1
#endif

#ifdef DUET_HAS_LIBPQ_HEADER
namespace {

using duet::task::postgres::Libpq;

#define DUET_LIBPQ(name, result, parameters) static_assert(std::is_same_v<decltype(&::name), result(*) parameters>);
#include "task/postgres/libpq_functions.h"
#undef DUET_LIBPQ

static_assert(sizeof(Libpq::PGnotify) == sizeof(::PGnotify));
static_assert(offsetof(Libpq::PGnotify, be_pid) == offsetof(::PGnotify, be_pid));
static_assert(offsetof(Libpq::PGnotify, extra) == offsetof(::PGnotify, extra));
static_assert(sizeof(Libpq::PQconninfoOption) == sizeof(::PQconninfoOption));
static_assert(offsetof(Libpq::PQconninfoOption, compiled) == offsetof(::PQconninfoOption, compiled));
static_assert(offsetof(Libpq::PQconninfoOption, val) == offsetof(::PQconninfoOption, val));
static_assert(std::is_same_v<Libpq::Oid, ::Oid>);
static_assert(sizeof(Libpq::ConnStatusType) == sizeof(::ConnStatusType));
static_assert(sizeof(Libpq::ExecStatusType) == sizeof(::ExecStatusType));
static_assert(int{Libpq::CONNECTION_OK} == int{::CONNECTION_OK});
static_assert(int{Libpq::CONNECTION_BAD} == int{::CONNECTION_BAD});
static_assert(int{Libpq::PGRES_POLLING_FAILED} == int{::PGRES_POLLING_FAILED});
static_assert(int{Libpq::PGRES_POLLING_READING} == int{::PGRES_POLLING_READING});
static_assert(int{Libpq::PGRES_POLLING_WRITING} == int{::PGRES_POLLING_WRITING});
static_assert(int{Libpq::PGRES_POLLING_OK} == int{::PGRES_POLLING_OK});
static_assert(int{Libpq::PGRES_EMPTY_QUERY} == int{::PGRES_EMPTY_QUERY});
static_assert(int{Libpq::PGRES_COMMAND_OK} == int{::PGRES_COMMAND_OK});
static_assert(int{Libpq::PGRES_TUPLES_OK} == int{::PGRES_TUPLES_OK});
static_assert(sizeof(Libpq::PGVerbosity) == sizeof(::PGVerbosity));
static_assert(int{Libpq::PQERRORS_DEFAULT} == int{::PQERRORS_DEFAULT});
static_assert(int{Libpq::PQERRORS_VERBOSE} == int{::PQERRORS_VERBOSE});
static_assert(Libpq::severity_field == PG_DIAG_SEVERITY_NONLOCALIZED);
static_assert(Libpq::sqlstate_field == PG_DIAG_SQLSTATE);
static_assert(Libpq::message_field == PG_DIAG_MESSAGE_PRIMARY);
static_assert(Libpq::hint_field == PG_DIAG_MESSAGE_HINT);

}  // namespace
#endif

namespace duet::task::postgres {
namespace {

TEST(Libpq, IsOpenedAndHasAllThatWeCall) { EXPECT_GE(libpq().PQlibVersion(), 140000); }

std::string error_of(const char* library_name) {
  try {
    open_libpq(library_name);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(Libpq, WhereItIsMissingTheErrorSaysWhatToInstall) {
  EXPECT_NE(error_of("libpq.so.0").find("install libpq5"), std::string::npos) << error_of("libpq.so.0");
  EXPECT_NE(error_of("libm.so.6").find("it has no PQ"), std::string::npos) << error_of("libm.so.6");
}

TEST(Libpq, TheFirstLineIsTrimmed) {
  EXPECT_EQ(first_line("  it failed \n\tIs it running?\n"), "it failed");
  EXPECT_EQ(first_line(nullptr), "");
  EXPECT_EQ(first_line("\n"), "");
}

}  // namespace
}  // namespace duet::task::postgres
