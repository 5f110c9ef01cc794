#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <tl/expected.hpp>

#include "app/doors/mcp_source.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json.h"

namespace duet::app::mcp {

/// The revisions of the Model Context Protocol that are spoken, the newest first. The first one is the modern era,
/// where every request says by itself what it is; the others begin with `initialize`.
inline constexpr std::array<std::string_view, 5> revisions = {"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26",
                                                              "2024-11-05"};
inline constexpr std::string_view modern_revision = revisions[0];
inline constexpr std::string_view newest_legacy = revisions[1];
/// The one that has batches.
inline constexpr std::string_view batch_revision = revisions[3];

/// The member of `_meta` that makes a request a modern one.
inline constexpr std::string_view version_key = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view tasks_extension = "io.modelcontextprotocol/tasks";

/// What a request says about itself, beside its method and its own params.
struct Envelope {
  bool is_modern = false;
  std::string_view revision = {};   ///< one of `revisions`
  bool has_tasks = false;           ///< its sender can have MCP tasks
  std::string progress_token = {};  ///< as it is spelt; empty: no progress is wanted
  boost::json::object params = {};
};

/// Tells the two eras apart, request by request. `initialized` is the revision that `initialize` has agreed on, if it
/// was called. The request's method may be unknown; that is found out later. `fields` are those of a request that came
/// by HTTP, and must go with it. Never throws on bad input.
tl::expected<Envelope, rpc::Error> read_envelope(std::string_view method, std::string_view params,
                                                 std::optional<std::string_view> initialized,
                                                 const McpFields* fields = nullptr);

/// The revision that an `initialize` for `asked` is answered with.
std::string_view agreed_revision(std::string_view asked);

/// A result as its era wants it: a modern one says that it is complete, and who answers. `members` are those of the
/// result, without its braces, spelt as JSON; they may be empty.
rpc::Json result_text(const Envelope& envelope, std::string_view members, std::string_view result_type = "complete");
/// The same for one that may be kept for `ttl` milliseconds, which only modern clients are told.
rpc::Json cacheable_text(const Envelope& envelope, std::string_view members, std::int64_t ttl);
/// The members of an object.
std::string members_of(const boost::json::object& object);

/// The params of a `notifications/progress` with these members, of which there is one at least.
rpc::Json progress_text(const Envelope& envelope, const boost::json::object& members);

/// `{name, version}` of this program.
boost::json::object server_info();

rpc::Error missing_tasks_capability();
/// With those that are spoken.
rpc::Error unsupported_revision(std::string_view requested);
/// -32602 with words of our own.
rpc::Error bad_params(std::string message);

}  // namespace duet::app::mcp
