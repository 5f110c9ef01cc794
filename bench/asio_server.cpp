// `ping` of bare_server on a Unix socket, with Boost.Asio in the place of duet's event loop. Everything above the
// Channel is the same, so the two programs differ in what they wait with alone. asio_server PATH async_read_some into a
// buffer of the connection's asio_server PATH wait    async_wait, then recv

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>

#include "duet/base/log_sink.h"
#include "duet/peer/connection.h"
#include "duet/transport/moved.h"

namespace {

using namespace duet;
using boost::asio::local::stream_protocol;
using boost::system::error_code;
using transport::IoResult;

class AsioChannel final : public transport::Channel {
 public:
  AsioChannel(stream_protocol::socket socket, bool waits) : socket_(std::move(socket)), waits_(waits) {}
  ~AsioChannel() override { close(); }

  void open(Listener& listener) override {
    listener_ = &listener;
    want(true, false);
  }

  void want(bool reading, bool writing) override {
    reading_ = reading;
    if (reading_ && !read_is_under_way_) start_reading();
    if (writing) start_waiting_for_room();
  }

  IoResult read(std::span<char> into) override {
    if (waits_) return transport::moved_by_read(recv(socket_.native_handle(), into.data(), into.size(), MSG_DONTWAIT));
    if (ended_) return {IoResult::State::ended};
    const std::size_t count = std::min(into.size(), held_);
    std::memcpy(into.data(), buffer_.data() + buffer_begin_, count);
    buffer_begin_ += count;
    held_ -= count;
    return {IoResult::State::some, count};
  }

  IoResult write(std::string_view bytes) override {
    constexpr int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    return transport::moved_by_write(send(socket_.native_handle(), bytes.data(), bytes.size(), flags));
  }

  void close() override {
    *alive_ = false;
    listener_ = nullptr;
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void start_reading() {
    read_is_under_way_ = true;
    if (waits_) {
      socket_.async_wait(stream_protocol::socket::wait_read, [this, alive = alive_](error_code) {
        if (*alive) on_input(0);
      });
    } else {
      socket_.async_read_some(boost::asio::buffer(buffer_),
                              [this, alive = alive_](error_code error, std::size_t count) {
                                if (!*alive) return;
                                ended_ = static_cast<bool>(error);
                                on_input(count);
                              });
    }
  }

  void on_input(std::size_t count) {
    const std::shared_ptr<bool> alive = alive_;
    read_is_under_way_ = false;
    buffer_begin_ = 0;
    held_ = count;
    do listener_->on_readable();
    while (*alive && held_ > 0);
    if (*alive && reading_ && !read_is_under_way_) start_reading();
  }

  void start_waiting_for_room() {
    socket_.async_wait(stream_protocol::socket::wait_write, [this, alive = alive_](error_code) {
      if (*alive) listener_->on_writable();
    });
  }

  stream_protocol::socket socket_;
  bool waits_;
  bool reading_ = false;
  bool read_is_under_way_ = false;
  bool ended_ = false;
  std::array<char, 16 * 1024> buffer_;
  std::size_t buffer_begin_ = 0;
  std::size_t held_ = 0;
  Listener* listener_ = nullptr;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class Server {
 public:
  Server(const char* path, bool waits) : acceptor_(context_, stream_protocol::endpoint(path)), waits_(waits) {
    methods_.add("ping", [] { return rpc::Json::view("{}"); });
  }

  void run() {
    accept();
    context_.run();
  }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code error, stream_protocol::socket socket) {
      if (error) return;
      add(std::move(socket));
      accept();
    });
  }

  void add(stream_protocol::socket socket) {
    const std::uint64_t id = ++last_;
    peer::ConnectionEvents events;
    events.on_closed = [this, id](peer::Ending) {
      boost::asio::post(context_, [this, id] { connections_.erase(id); });
    };
    auto connection =
        std::make_unique<peer::Connection>(timers_, std::make_unique<AsioChannel>(std::move(socket), waits_),
                                           peer::Protocol::json_lines(), methods_, log_, std::move(events));
    peer::Connection& opened = *connection;
    connections_.emplace(id, std::move(connection));
    opened.open();
  }

  boost::asio::io_context context_{1};
  transport::Loop timers_;  // a Connection asks for one; a ping uses nothing of it but its memory
  base::Log log_{base::stderr_sink(false)};
  peer::Methods methods_;
  stream_protocol::acceptor acceptor_;
  bool waits_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::unique_ptr<peer::Connection>> connections_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  Server(argv[1], argc > 2 && std::string_view(argv[2]) == "wait").run();
}
