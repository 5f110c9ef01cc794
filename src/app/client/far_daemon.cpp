#include "app/client/far_daemon.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "app/client/refusal_text.h"
#include "app/client/tls_failure_text.h"
#include "duet/rpc/message.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/tcp_connect.h"
#include "duet/transport/tls_channel.h"
#include "duet/transport/tls_context.h"

namespace duet::app {
namespace {

using std::chrono::milliseconds;

constexpr const char* lines_protocol = "duet-rpc/1";  // by ALPN
constexpr std::size_t longest_farewell = 4096;

// A router that forgets a connection tells nobody.
void notice_silence(int socket) {
  const auto set = [socket](int level, int name, int value) { setsockopt(socket, level, name, &value, sizeof value); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

/// Hears what a daemon says to somebody for whom it has no role, before it leaves: an error that answers nothing, and
/// that it would be in vain to wait behind.
class FarChannel final : public transport::Channel {
 public:
  using OnFarewell = std::function<void(const rpc::Error&)>;

  FarChannel(std::unique_ptr<transport::Channel> channel, OnFarewell on_farewell)
      : channel_(std::move(channel)), on_farewell_(std::move(on_farewell)) {}

  void open(Listener& listener) override { channel_->open(listener); }
  void want(bool reading, bool writing) override { channel_->want(reading, writing); }
  void end_output() override { channel_->end_output(); }
  void close() override { channel_->close(); }
  transport::IoResult write(std::string_view bytes) override { return channel_->write(bytes); }
  transport::IoResult read(std::span<char> into) override {
    const transport::IoResult moved = channel_->read(into);
    if (on_farewell_ && moved.state == transport::IoResult::State::some) hear({into.data(), moved.count});
    return moved;
  }

 private:
  void hear(std::string_view bytes) {
    first_line_.append(bytes.substr(0, bytes.find('\n')));
    const bool is_whole = bytes.find('\n') != std::string_view::npos;
    if (!is_whole && first_line_.size() <= longest_farewell) return;
    const rpc::Message message = rpc::decode(first_line_, rpc::Batches::allowed);
    const bool answers_nothing = message.kind == rpc::Message::Kind::response && message.id == "null";
    if (is_whole && answers_nothing && !message.error.empty()) tell(rpc::decode_error(message.error));
    on_farewell_ = nullptr;
    first_line_ = {};
  }

  // Others may be other the next time: too many clients, for example.
  void tell(const rpc::Error& error) {
    if (error.code() == rpc::code::not_permitted) on_farewell_(error);
  }

  std::unique_ptr<transport::Channel> channel_;
  OnFarewell on_farewell_;
  std::string first_line_;
};

}  // namespace

/// What has become of a connection.
struct FarDaemon::Link {
  bool is_open = false;
  std::optional<Failure> failure = {};
};

FarDaemon::FarDaemon(FarPlace place, std::string program) : place_(std::move(place)), program_(std::move(program)) {}

void FarDaemon::read_identity() {
  if (context_) return;
  if (access(place_.identity.c_str(), F_OK) != 0 && errno == ENOENT) {
    throw Failure("there is no identity at " + place_.identity + ": '" + program_ +
                  " cert client NAME --role R' on the daemon's machine makes one, and --identity says where it is");
  }
  try {
    context_ = transport::TlsContext::for_client(transport::read_pem_file(place_.identity, true));
  } catch (const std::runtime_error& fault) {
    throw Failure("the identity is of no use: " + std::string(fault.what()));
  }
}

base::Fd FarDaemon::reach(milliseconds patience) const {
  try {
    base::Fd socket = transport::connect_tcp(place_.url.host, place_.url.port, patience);
    notice_silence(socket.get());
    return socket;
  } catch (const transport::Unreachable& failure) {
    if (failure.timed_out()) {
      throw Failure(place() + " did not answer in time (" + failure.what() + "); --timeout gives it more",
                    exit_code::no_answer);
    }
    throw Failure("no daemon can be reached at " + place() + " (" + failure.what() + ")", exit_code::no_daemon);
  }
}

std::unique_ptr<transport::Channel> FarDaemon::connect(transport::Loop& loop, milliseconds patience) {
  patience_ = std::max(patience_, patience);
  return shake_hands(loop, patience);
}

std::unique_ptr<transport::Channel> FarDaemon::shake_hands(transport::Loop& loop, milliseconds patience) {
  const base::TimePoint begun = loop.now();
  read_identity();
  auto socket = std::make_unique<transport::FdChannel>(loop, reach(patience));
  auto session = transport::TlsSession::client(context_, place_.server_name, lines_protocol);
  const auto link = std::make_shared<Link>();
  transport::TlsEvents events;
  events.on_open = [link] { link->is_open = true; };
  events.on_failed = [link, place = place_, program = program_, us = context_](const transport::TlsFailure& failure) {
    // A refusal that was heard before is the reason, not the end that follows it.
    if (!link->failure) link->failure = failure_of_tls(failure, place, program, {us->own(), us->authorities()});
  };
  auto channel =
      std::make_unique<transport::TlsChannel>(loop, std::move(socket), std::move(session), std::move(events));
  channel->start(std::max<base::Duration>(patience - (loop.now() - begun), base::Duration::zero()));
  while (!link->is_open && !link->failure) loop.turn();
  if (link->failure) throw Failure(*link->failure);
  if (channel->session().protocol() != lines_protocol) {
    throw Failure(place() + " speaks TLS, but is not the TLS door of a daemon");
  }
  link_ = link;
  return std::make_unique<FarChannel>(std::move(channel), [link, there = place()](const rpc::Error& error) {
    link->failure = Failure(refusal_text(there, error));
  });
}

std::unique_ptr<transport::Channel> FarDaemon::try_connect(transport::Loop& loop) {
  try {
    return shake_hands(loop, moment_);
  } catch (const Failure& failure) {
    if (failure.code() == exit_code::failed) throw;
    if (failure.code() == exit_code::no_answer) moment_ = std::max(moment_, std::min(2 * moment_, patience_));
    return nullptr;
  }
}

bool FarDaemon::was_cut() const { return link_ && link_->failure; }

std::optional<Failure> FarDaemon::refusal() const {
  const bool is_refused = link_ && link_->failure && link_->failure->code() == exit_code::failed;
  return is_refused ? link_->failure : std::nullopt;
}

}  // namespace duet::app
