#include "duet/peer/output.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "duet/rpc/json_text.h"

namespace duet::peer {
namespace {

constexpr std::size_t portion_bytes = 256 * 1024;
constexpr std::size_t kept_bytes = 1024;  // an idle connection's buffer
constexpr std::size_t most_usual = 64 * 1024;
constexpr std::size_t beyond_recall = 64 * 1024;  // more is not made ready while calls can still be withdrawn

std::size_t most_bytes(const rpc::EncodedMessage& pieces) { return pieces.size() + framing::Encoder::most_bytes; }

// Returns how many bytes that were.
std::size_t write_frame(framing::Encoder& encoder, const rpc::EncodedMessage& pieces, char* begin) {
  const std::size_t body_size = pieces.size();
  char* const body = begin + encoder.begin(begin, body_size);
  pieces.copy_to(body);
  const std::size_t payload = pieces.payload_size();
  char* const body_end = body + body_size;
  char* const end = body_end + encoder.end(body_end, {body_end - 1 - payload, payload});
  return static_cast<std::size_t>(end - begin);
}

}  // namespace

std::string framed(framing::Encoder& encoder, const rpc::EncodedMessage& pieces) {
  std::string message(most_bytes(pieces), '\0');
  message.resize(write_frame(encoder, pieces, message.data()));
  return message;
}

std::string framed_notification(framing::Encoder& encoder, std::string_view method, const rpc::Json& params) {
  return framed(encoder, rpc::encode_notification(rpc::quoted(method), text_of_params(params)));
}

char* Output::make_room(std::size_t more) {
  if (last_.block.capacity - last_.size < more) {
    const std::size_t wanted =
        last_.size == 0 ? std::max(more, usual_) : std::max(last_.size + more, last_.block.capacity * 2);
    pool_.grow(last_.block, wanted, last_.size);
  }
  return last_.block.data + last_.size;
}

void Output::add(const rpc::EncodedMessage& pieces) {
  if (!waiting_.empty()) return add_framed(framed(encoder_, pieces));
  char* const begin = make_room(most_bytes(pieces));
  added(write_frame(encoder_, pieces, begin));
}

void Output::add_framed(std::string_view message) {
  if (waiting_.empty()) return append(message);
  const WaitingKey& last = waiting_.rbegin()->first;
  wait({last.first, last.second + 1}, std::string(message));
}

void Output::add_call(CallId id, const rpc::EncodedMessage& pieces) { wait({id, 0}, framed(encoder_, pieces)); }

void Output::wait(WaitingKey key, std::string message) {
  waiting_bytes_ += message.size();
  size_ += message.size();
  waiting_.emplace_hint(waiting_.end(), key, std::move(message));
}

bool Output::withdraw(CallId id) {
  const auto found = waiting_.find({id, 0});
  if (found == waiting_.end()) return false;
  waiting_bytes_ -= found->second.size();
  size_ -= found->second.size();
  waiting_.erase(found);
  return true;
}

void Output::append(std::string_view message) {
  std::memcpy(make_room(message.size()), message.data(), message.size());
  added(message.size());
}

void Output::added(std::size_t bytes) {
  last_.size += bytes;
  size_ += bytes;
  if (last_.size >= portion_bytes) portions_.push_back(std::exchange(last_, {}));
}

std::string_view Output::front() {
  if (!waiting_.empty()) add_waiting();
  const Portion& front = portions_.empty() ? last_ : portions_.front();
  return {front.block.data + sent_, front.size - sent_};
}

void Output::written(std::size_t count) {
  const Portion& front = portions_.empty() ? last_ : portions_.front();
  sent_ += count;
  size_ -= count;
  if (sent_ == front.size) drop_front_portion();
}

void Output::add_waiting() {
  while (!waiting_.empty() && size_ - waiting_bytes_ < beyond_recall) {
    const std::string message = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    waiting_bytes_ -= message.size();
    size_ -= message.size();
    append(message);
  }
}

void Output::drop_front_portion() {
  sent_ = 0;
  if (!portions_.empty()) {
    pool_.give(portions_.front().block);
    portions_.pop_front();
    return;
  }
  usual_ = std::min(last_.size, most_usual);
  last_.size = 0;
  if (last_.block.capacity > kept_bytes) pool_.give(last_.block);
}

void Output::clear() {
  for (Portion& portion : portions_) pool_.give(portion.block);
  portions_.clear();
  pool_.give(last_.block);
  waiting_.clear();
  last_.size = sent_ = size_ = waiting_bytes_ = 0;
}

}  // namespace duet::peer
