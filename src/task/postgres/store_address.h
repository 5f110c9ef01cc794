#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace duet::task::postgres {

/// One of the servers that may be the primary.
struct Host {
  std::string name;     ///< a name, an address, a folder of a Unix socket; empty: libpq's own folder
  std::string address;  ///< `hostaddr`, if it was given
  std::string port;

  bool is_unix_socket() const;
  /// Through a Unix socket or loopback: nobody on the way can listen.
  bool is_here() const;
  /// `name:port`, for people.
  std::string text() const;
};

/// Whether an IPv4 or IPv6 address is one of this machine to itself.
bool is_loopback(const std::string& address);

/// What `store = "postgresql://…"` means: where the servers are, and everything else that libpq is told.
///
/// libpq's own sources (environment, service file) are looked at once, in parse(). Its parameters may hold a password,
/// which is in no error and in no text of this class, whatever the address looks like. It opens no connection.
class StoreAddress {
 public:
  struct Wishes {
    std::string name;       ///< the worker's, for `application_name`
    bool insecure = false;  ///< `[cluster] insecure`: less than `verify-full` is fine
  };
  using Parameters = std::map<std::string, std::string>;

  /// The error is for people. Throws std::runtime_error if there is no libpq.
  static tl::expected<StoreAddress, std::string> parse(const std::string& store, const Wishes& wishes);

  const std::vector<Host>& hosts() const { return hosts_; }
  /// For PQconnectStartParams, without `host`, `hostaddr` and `port`.
  const Parameters& parameters() const { return parameters_; }
  /// `user@host:port/dbname`.
  std::string text() const;
  std::string user() const { return parameter("user"); }
  std::string database() const { return parameter("dbname"); }
  std::string ssl_mode() const { return parameter("sslmode"); }

  /// A password stands in `store` itself, so that nobody else may read the file.
  bool has_password() const { return has_password_; }
  /// A server elsewhere is reached with less than `verify-full`; only with `insecure`.
  bool is_insecure() const { return insecure_; }

 private:
  std::string parameter(const std::string& name) const;

  std::vector<Host> hosts_;
  Parameters parameters_;
  bool has_password_ = false;
  bool insecure_ = false;
};

}  // namespace duet::task::postgres
