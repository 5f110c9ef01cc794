#include "app/client/relay.h"

#include <optional>
#include <utility>

#include "duet/rpc/json_text.h"
#include "duet/rpc/message.h"

namespace duet::app {
namespace {

using framing::Fault;
using transport::IoResult;

constexpr std::size_t read_at_once = 64U * 1024;
constexpr std::string_view subscription_id = R"("duet-rpc connect")";

// Both ways a message may be as large as its reader takes it.
peer::Protocol protocol_of(peer::Protocol::Framing framing, std::size_t max_message) {
  return {.framing = framing, .max_message = max_message};
}

rpc::Error refusal_of(Fault fault) {
  const std::string_view reason = framing::reason_of(fault);
  const bool is_unparsable = fault == Fault::malformed_header || fault == Fault::length_mismatch;
  return is_unparsable ? rpc::parse_error(reason) : rpc::invalid_request(reason);
}

// Blanks may stand around a JSON text.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

Relay::Side::Side(Relay& owner, std::unique_ptr<transport::Channel> carrier, const peer::Protocol& protocol)
    : relay(owner),
      channel(std::move(carrier)),
      decoder(protocol.make_decoder(pool)),
      encoder(protocol.make_encoder()),
      output(*encoder, pool) {}

Relay::Relay(std::unique_ptr<transport::Channel> client, peer::Protocol::Framing framing,
             std::unique_ptr<transport::Channel> daemon, Events events)
    : events_(std::move(events)),
      client_(*this, std::move(client), protocol_of(framing, framing::max_body)),
      daemon_(*this, std::move(daemon), protocol_of(peer::Protocol::Framing::lines, framing::max_answer)),
      room_(read_at_once) {}

Relay::~Relay() = default;

void Relay::subscribe(const rpc::Json& params) {
  awaits_subscription_ = true;
  const std::string method = rpc::quoted("events.subscribe");
  daemon_.output.add(rpc::encode_request(subscription_id, method, params.text()));
}

void Relay::open() {
  client_.channel->open(client_);
  daemon_.channel->open(daemon_);
  settle();
}

// False: there is nothing more to read now.
bool Relay::read_some(Side& side) {
  if (has_ended_ || side.has_ended) return false;
  const IoResult got = side.channel->read(room_);
  if (got.state == IoResult::State::blocked) return false;
  if (got.state != IoResult::State::some) {
    take_end(side, got.state == IoResult::State::broken);
    return false;
  }
  side.decoder->feed({room_.data(), got.count});
  while (const std::optional<framing::Frame> frame = side.decoder->next()) {
    &side == &client_ ? take_from_client(*frame) : take_from_daemon(*frame);
  }
  return true;
}

void Relay::read(Side& side) {
  read_some(side);
  settle();
}

// The other end is closed. What it has written before that is no more than the system keeps for a socket.
void Relay::read_rest(Side& side) {
  while (read_some(side)) {
  }
  settle();
}

void Relay::take_end(Side& side, bool is_broken) {
  side.has_ended = true;
  if (&side == &daemon_) return side.channel->close();  // else its hang-up would be told for ever
  if (is_broken) return end(Ending::unreadable);
  if (const std::optional<Fault> fault = side.decoder->finish()) answer("null", refusal_of(*fault));
}

void Relay::take_from_client(const framing::Frame& frame) {
  if (!frame.body) return answer("null", refusal_of(*frame.fault));
  const rpc::Message message = rpc::decode(*frame.body, rpc::Batches::allowed);
  if (!message.is_json) return take_unreadable(frame);
  if (frame.fault) return answer(message.id, refusal_of(*frame.fault));
  const std::string_view text = trimmed(*frame.body);
  const bool is_scalar = !text.starts_with('{') && !text.starts_with('[');
  if (is_scalar) return answer("null", message.refusal.value_or(rpc::parse_error("invalid-json")));
  const bool is_owed = message.kind == rpc::Message::Kind::request || message.kind == rpc::Message::Kind::invalid;
  owed_answers_ += is_owed ? 1 : 0;
  pass_on(text, daemon_);
}

// Its length may have been wrong, too.
void Relay::take_unreadable(const framing::Frame& frame) {
  const std::optional<Fault> wrong_length = client_.decoder->reject();
  if (frame.is_guess) return;
  const std::optional<Fault> fault = frame.fault ? frame.fault : wrong_length;
  answer("null", fault ? refusal_of(*fault) : rpc::parse_error("invalid-json"));
}

void Relay::take_from_daemon(const framing::Frame& frame) {
  if (!frame.body) return end(Ending::oversize);
  if (awaits_subscription_) return take_subscription(*frame.body);
  const bool is_answer = rpc::decode(*frame.body, rpc::Batches::allowed).kind == rpc::Message::Kind::response;
  owed_answers_ -= is_answer && owed_answers_ > 0 ? 1 : 0;
  pass_on(trimmed(*frame.body), client_);
}

// Requests are answered in order, so that only events come before it.
void Relay::take_subscription(std::string_view text) {
  const rpc::Message message = rpc::decode(text, rpc::Batches::allowed);
  if (message.kind != rpc::Message::Kind::response || message.id != subscription_id) return;
  awaits_subscription_ = false;
  if (message.error.empty()) return;
  refusal_ = message.error;
  end(Ending::refused);
}

void Relay::answer(std::string_view id, const rpc::Error& error) {
  const std::string text = rpc::encode(error);
  const std::size_t before = client_.output.size();
  client_.output.add(rpc::encode_error(id, text));
  own_answers_ += client_.output.size() - before;
}

void Relay::pass_on(std::string_view message, Side& to) {
  if (!to.takes_none) to.output.add(rpc::encoded(message));
}

// Writes what can be written, and sees what is to be done next.
void Relay::settle() {
  if (has_ended_) return;
  write(client_);
  write(daemon_);
  if (client_.takes_none) return end(Ending::client_gone);
  if (client_.output.empty()) own_answers_ = 0;
  if (client_.has_ended && daemon_.output.empty() && !std::exchange(told_last_request_, true))
    events_.on_last_request();
  if (daemon_.has_ended && client_.output.empty()) {
    const bool has_everything = client_.has_ended && owed_answers_ == 0 && !daemon_.takes_none;
    return end(has_everything ? Ending::done : Ending::daemon_gone);
  }
  want();
}

void Relay::write(Side& side) {
  while (!side.takes_none && !side.output.empty()) {
    const IoResult put = side.channel->write(side.output.front());
    if (put.state == IoResult::State::blocked) return;
    if (put.state == IoResult::State::some) {
      side.output.written(put.count);
    } else {
      side.takes_none = true;
      side.output.clear();
    }
  }
}

// Answers of the daemon that the client does not read do not keep it from writing: it is the daemon that says when it
// has enough. Answers of our own do.
void Relay::want() {
  const bool hears_client =
      !client_.has_ended && !daemon_.has_ended && daemon_.output.size() < most_waiting && own_answers_ < most_waiting;
  const bool hears_daemon = !daemon_.has_ended && client_.output.size() < most_waiting;
  client_.channel->want(hears_client, !client_.output.empty());
  daemon_.channel->want(hears_daemon, !daemon_.output.empty());
}

void Relay::end(Ending ending) {
  if (std::exchange(has_ended_, true)) return;
  client_.channel->want(false, false);
  daemon_.channel->want(false, false);
  events_.on_end(ending);
}

}  // namespace duet::app
