#pragma once

#include <string>

#include "duet/api.h"
#include "duet/base/log_sink.h"
#include "duet/peer/announcement.h"
#include "duet/peer/client.h"
#include "duet/peer/connection.h"
#include "duet/peer/conversation.h"
#include "duet/peer/methods.h"
#include "duet/peer/server.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json.h"
#include "duet/rpc/json_read.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/loop.h"
#include "duet/transport/memory.h"
#include "duet/transport/sentinel.h"
#include "duet/transport/stdio.h"
#include "duet/transport/unix_acceptor.h"
#include "duet/transport/unix_socket.h"

/// The names that most programs need, in one place.
namespace duet {

using base::Log;
using peer::Announcement;
using peer::CallFailed;
using peer::CallId;
using peer::Client;
using peer::Connection;
using peer::ConnectionEvents;
using peer::Conversation;
using peer::ConversationEvents;
using peer::Methods;
using peer::Outcome;
using peer::Protocol;
using peer::Reply;
using peer::Request;
using peer::Server;
using peer::ServerEvents;
using rpc::Error;
using rpc::Json;
using rpc::JsonOf;
using transport::Loop;

/// A whole server: listens at a Unix socket, logs to stderr, and ends in order at SIGINT or SIGTERM: what runs may
/// finish for two seconds. Returns then. Throws std::system_error if it cannot listen there.
DUET_API void serve(const std::string& path, Methods& methods);

}  // namespace duet
