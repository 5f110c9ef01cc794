#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "duet/framing/content_length.h"
#include "duet/rpc/message.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::bridge {

/// What was lost of what a server wrote.
struct LostMessage {
  std::string_view reason;  ///< as in `error.data.reason` of the wire's rules
  std::string_view id;      ///< the id of the answer that it was, raw, if that could still be seen
  bool is_printed;          ///< text where a header should be
  bool may_be_answer;       ///< it does not look like a request, a notification or something printed to stdout
};

/// The two byte streams of a language server as messages: one reader and one writer for all of its life.
///
/// It reads as a client does: large bodies, any content type, no time limit, and a fault is told, never answered. What
/// is to be written waits in one queue in the order it came; reading never waits for it. Text on stdout that is no
/// message is skipped, and its start is kept. It does not know what messages mean, and does not bound the queue: it
/// tells how much waits. For the loop's thread only.
class ServerStream final : private transport::Channel::Listener {
 public:
  static constexpr std::size_t kept_of_noise = 300;
  static constexpr std::uint64_t most_noise = 1U << 20U;

  /// Called from the loop, or from drain(). None of them may destroy the stream.
  struct Events {
    std::function<void(const rpc::Message&, std::string_view body)> on_message;
    std::function<void(const LostMessage&)> on_lost;
    std::function<void()> on_flood;   ///< once: `most_noise` bytes came and not one message
    std::function<void()> on_closed;  ///< once: the server closed its stdin or its stdout
  };

  ServerStream(transport::Loop& loop, std::unique_ptr<transport::Channel> channel, std::size_t max_body, Events events);
  ServerStream(const ServerStream&) = delete;
  ServerStream& operator=(const ServerStream&) = delete;
  ~ServerStream();

  /// With a ticket other than 0 the message can be taken back for as long as it waits.
  void send(const rpc::Pieces& message, std::uint64_t ticket = 0);
  /// True: it was not sent, and never will be.
  bool withdraw(std::uint64_t ticket);
  bool is_waiting(std::uint64_t ticket) const;

  /// Reads what is there now, e.g. because the server has ended.
  void drain();
  void close();

  std::size_t waiting_bytes() const { return queued_bytes_ + (writing_.size() - written_); }
  /// The start of the latest text on stdout that was no message.
  const std::string& noise() const { return noise_; }
  bool inside_message() const { return decoder_.inside_frame(); }
  base::TimePoint heard_at() const { return heard_at_; }  ///< of the last byte received

 private:
  struct Queued {
    std::uint64_t ticket;
    std::string body;
  };

  void on_readable() override { read_once(); }
  void on_writable() override { write(); }
  void on_hangup() override {}  // the reads and writes tell

  bool read_once();
  void take_frames();
  void take(const framing::Frame& frame);
  void lose(std::string_view reason);
  std::string start_behind_message() const;
  void end_of_output();
  void write();
  bool fill_buffer();
  void write_later();
  void update_wants();
  void tell_closed();

  transport::Loop& loop_;
  std::unique_ptr<transport::Channel> channel_;
  framing::ContentLengthDecoder decoder_;
  framing::ContentLengthEncoder encoder_;
  Events events_;

  std::deque<Queued> queue_;
  std::size_t queued_bytes_ = 0;
  std::string writing_;  // framed, beyond recall
  std::size_t written_ = 0;
  bool write_planned_ = false;
  bool can_read_ = true;
  bool can_write_ = true;
  bool told_closed_ = false;
  bool told_flood_ = false;

  std::string_view chunk_;  // what was read last, while its frames are taken
  std::uint64_t received_ = 0;
  base::TimePoint heard_at_;
  std::uint64_t messages_ = 0;
  std::uint64_t message_end_ = 0;  // of the last one, whole or lost, counted from the first byte received
  std::string since_message_;      // the first bytes behind it
  std::string noise_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace duet::bridge
