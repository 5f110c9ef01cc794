#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/doors/event_stream.h"
#include "app/doors/http_gate.h"
#include "app/doors/mcp_post.h"
#include "app/doors/rpc_exchange.h"
#include "duet/base/clock.h"
#include "duet/framing/http_request.h"
#include "duet/framing/http_response.h"
#include "duet/peer/conversation.h"
#include "duet/transport/acceptor.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::app {

class HttpDoor;

/// One connection of the HTTP door: requests one after another, until it is closed or becomes a WebSocket.
///
/// Everything that can be decided on a head is decided there, in the order of framing::HttpFault, before a byte of the
/// body is read. `shown`: who the client is, if a certificate has shown it; then no token is looked at. For the loop's
/// thread only; its door destroys it in a later turn than the one that closed it.
class HttpClient final : private transport::Channel::Listener, private EventStream {
 public:
  HttpClient(HttpDoor& door, std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity,
             std::uint64_t number, std::shared_ptr<const peer::Admission> shown = nullptr);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  /// With what was read from the channel already.
  void open(std::string_view first_bytes = {});
  /// Answers without reading a byte: the peer is another user, or there are too many.
  void turn_away(framing::HttpFault fault);
  /// Nothing new is begun; what is under way is answered.
  void stop();
  void close();
  /// Whose token has ended is asked for nothing and told nothing any more.
  void end_session(const peer::Admission& ended);

 private:
  static constexpr base::Duration idle_time = std::chrono::seconds(60);
  /// So that a reader, and whatever is on the way to it, sees that we are there.
  static constexpr base::Duration comment_time = std::chrono::seconds(15);
  static constexpr std::size_t small_answer = 16U * 1024;  ///< is copied behind its head, and goes out with it
  static constexpr std::size_t most_untold = 256U * 1024;  ///< of a stream of `/mcp`: who reads so little is given up

  enum class Phase : std::uint8_t {
    head,         ///< of a request is awaited
    body,         ///< is awaited
    answer,       ///< to a call is awaited, or being written
    stream,       ///< of events, or of messages before an answer, is being written
    last_answer,  ///< is being written
    lingering,    ///< until the peer has read that
  };

  void on_readable() override;
  void on_writable() override;
  void on_hangup() override { close(); }

  void discard(std::size_t count);
  void take_end();
  void advance();
  void advance_later();
  bool handle_requests();
  void take_head(const framing::HttpHead& head);
  void take_pass(const HttpPass& pass);
  void refuse(framing::HttpFault fault, bool goes_on);
  void serve_page(const framing::HttpHead& head);
  void serve_metrics();
  void upgrade(const framing::HttpHead& head);
  void begin_stream(const framing::HttpHead& head);
  bool give(const StreamedEvent& event, std::size_t most_waiting) override;
  void give_last(const StreamedEvent& event) override;
  void flush_later();
  void take_body(std::string_view body);
  void reserve_what_is_kept();
  void log_in(std::string_view body);
  void log_out();
  void answer_call();
  void begin_mcp(std::string_view body);
  void begin_mcp_stream();
  void tell_mcp(std::string_view method, const rpc::Json& params);
  void answer_mcp();
  void reserve_for_answer(std::size_t size);
  void answer_mcp_with(std::string_view answer);
  void answer_mcp_stream(std::string_view answer);
  void be_late_with_mcp();
  void respond(std::string_view type, std::string_view body);
  void answered();
  bool write_out();
  bool write_answer();
  void flush();
  void linger();
  void end();
  void drop_exchange();
  void update_wants();
  void expect(base::Duration within);
  void be_late();

  HttpDoor& door_;
  std::unique_ptr<transport::Channel> channel_;
  transport::PeerIdentity identity_;
  std::uint64_t number_;
  std::shared_ptr<const peer::Admission> shown_;
  framing::HttpRequestDecoder decoder_;
  Phase phase_ = Phase::head;
  std::string out_;
  std::size_t sent_ = 0;
  std::size_t discarded_ = 0;
  bool closes_ = false;  // after the answer
  bool stopping_ = false;
  bool input_ended_ = false;
  bool closed_ = false;
  bool has_begun_ = false;  // a request; else it is idle
  bool is_first_ = true;    // whose time began with the connection
  bool reading_ = true;     // what the channel was told
  bool writing_ = false;

  // The request under way.
  HttpRoute route_ = HttpRoute::page;
  bool is_head_ = false;
  std::string_view allow_;
  std::optional<unsigned> retry_after_;
  std::shared_ptr<const peer::Admission> admission_;
  const peer::Admission* known_as_ = nullptr;  // by the last token that counted; only to be compared
  std::unique_ptr<RpcExchange> exchange_;
  std::unique_ptr<McpPost> mcp_;  // if it is one
  std::uint64_t number_of_stream_ = 0;
  std::uint64_t reserved_ = 0;  // of what bodies may take together
  std::uint64_t repeated_ = 0;  // of that, what answers to `POST /mcp` in out_ repeat: ids may be long

  base::TimePoint body_began_;
  base::TimePoint heard_at_;
  transport::Loop::Timer timer_;
  transport::Loop::Timer advancing_;
  transport::Loop::Deferred flushing_;
};

}  // namespace duet::app
