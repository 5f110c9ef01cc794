#include "bridge/server_stream.h"

#include <algorithm>
#include <utility>

namespace duet::bridge {
namespace {

using transport::Moved;

constexpr std::size_t written_at_once = 64 * 1024;
constexpr std::size_t kept_capacity = 1024 * 1024;

// What may be the start of a lost answer, perhaps with its header: without what follows it, empty if it is anything
// else. Behind printed text comes the next header, and what that announces is not lost.
std::string_view start_of_answer(std::string_view text, bool is_printed) {
  constexpr std::string_view header = "Content-Length:";
  const std::size_t brace = text.find("{\"");
  if (brace == std::string_view::npos || (is_printed && text.find(header, 1) < brace)) return {};
  text = text.substr(0, text.find(header, brace));
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return has(R"("jsonrpc")") && !has(R"("method")") ? text : std::string_view();
}

std::string_view visible_id(std::string_view start) {
  constexpr std::string_view name = R"("id":)";
  const std::size_t at = start.find(name);
  if (at == std::string_view::npos || std::ranges::count(start.substr(0, at), '{') != 1) return {};
  std::string_view id = start.substr(at + name.size());
  id.remove_prefix(std::min(id.find_first_not_of(' '), id.size()));
  const std::size_t digits = std::min(id.find_first_not_of("0123456789"), id.size());
  return digits < id.size() ? id.substr(0, digits) : std::string_view();  // the number may go on behind the end
}

}  // namespace

ServerStream::ServerStream(transport::Loop& loop, std::unique_ptr<transport::Channel> channel, std::size_t max_body,
                           Events events)
    : loop_(loop), channel_(std::move(channel)), decoder_(max_body), events_(std::move(events)) {
  channel_->open(*this);
}

ServerStream::~ServerStream() {
  *alive_ = false;
  close();
}

void ServerStream::send(const rpc::Pieces& message, std::uint64_t ticket) {
  if (!can_write_) return;
  Queued queued{.ticket = ticket, .body = {}};
  queued.body.reserve(message.size());
  message.append_to(queued.body);
  queued_bytes_ += queued.body.size();
  queue_.push_back(std::move(queued));
  write_later();
}

bool ServerStream::withdraw(std::uint64_t ticket) {
  const auto found = std::ranges::find(queue_, ticket, &Queued::ticket);
  if (found == queue_.end()) return false;
  queued_bytes_ -= found->body.size();
  queue_.erase(found);
  return true;
}

bool ServerStream::is_waiting(std::uint64_t ticket) const {
  return std::ranges::find(queue_, ticket, &Queued::ticket) != queue_.end();
}

void ServerStream::drain() {
  constexpr int most_reads = 2048;  // others that hold the pipe may go on writing
  for (int reads = 0; reads < most_reads && read_once(); ++reads) {
  }
}

void ServerStream::close() {
  can_read_ = can_write_ = false;
  queue_.clear();
  channel_->close();
}

bool ServerStream::read_once() {
  if (!can_read_) return false;
  std::vector<char>& scratch = loop_.scratch();
  const Moved moved = channel_->read(scratch);
  if (moved.state == Moved::State::blocked) return false;
  if (moved.state != Moved::State::some) {
    end_of_output();
    return false;
  }
  chunk_ = {scratch.data(), moved.count};
  received_ += chunk_.size();
  heard_at_ = loop_.now();
  decoder_.feed(chunk_);
  take_frames();
  chunk_ = {};
  const bool flood = messages_ == 0 && received_ > most_noise && !decoder_.inside_frame();
  if (flood && !std::exchange(told_flood_, true)) events_.on_flood();
  return true;
}

void ServerStream::take_frames() {
  while (const std::optional<framing::Frame> frame = decoder_.next()) {
    // A frame without a body is a fault, and the reader stands where it goes on.
    const std::uint64_t end = received_ - (decoder_.held() - frame->body.value_or("").size());
    take(*frame);
    message_end_ = end;
    since_message_.clear();
  }
  since_message_ = start_behind_message();
}

std::string ServerStream::start_behind_message() const {
  const std::uint64_t chunk_begin = received_ - chunk_.size();
  const std::uint64_t known = std::max(message_end_, chunk_begin) - chunk_begin;
  const std::string_view rest = chunk_.substr(static_cast<std::size_t>(known));
  return since_message_ + std::string(rest.substr(0, kept_of_noise - since_message_.size()));
}

void ServerStream::take(const framing::Frame& frame) {
  if (!frame.body) return lose(framing::reason_of(*frame.fault));
  const rpc::Message message = rpc::decode(*frame.body, rpc::Batches::refused);
  if (message.is_json) {
    ++messages_;
    return events_.on_message(message, *frame.body);
  }
  const std::optional<framing::Fault> fault = decoder_.reject();
  if (frame.is_guess) return;
  lose(fault ? framing::reason_of(*fault) : "invalid-json");
}

void ServerStream::lose(std::string_view reason) {
  noise_ = start_behind_message();
  const bool is_printed = reason == framing::reason_of(framing::Fault::malformed_header);
  const std::string_view answer = start_of_answer(noise_, is_printed);
  events_.on_lost(
      {.reason = reason, .id = visible_id(answer), .is_printed = is_printed, .may_be_answer = !answer.empty()});
}

void ServerStream::end_of_output() {
  can_read_ = false;
  if (const std::optional<framing::Fault> fault = decoder_.finish()) lose(framing::reason_of(*fault));
  update_wants();
  tell_closed();
}

void ServerStream::write() {
  while (can_write_ && fill_buffer()) {
    const Moved moved = channel_->write(std::string_view(writing_).substr(written_));
    if (moved.state == Moved::State::blocked) break;
    if (moved.state != Moved::State::some) {
      can_write_ = false;
      queue_.clear();
      queued_bytes_ = 0;
      writing_.clear();
      written_ = 0;
      tell_closed();
      break;
    }
    written_ += moved.count;
  }
  update_wants();
}

// Whatever has been framed is written to its last byte; a message in the queue can still be taken back.
bool ServerStream::fill_buffer() {
  if (written_ < writing_.size()) return true;
  if (writing_.capacity() > kept_capacity) writing_ = {};
  writing_.clear();
  written_ = 0;
  while (!queue_.empty() && writing_.size() < written_at_once) {
    const std::string& body = queue_.front().body;
    char head[framing::Encoder::most_bytes];
    writing_.append(head, encoder_.begin(head, body.size())).append(body);
    queued_bytes_ -= body.size();
    queue_.pop_front();
  }
  return !writing_.empty();
}

void ServerStream::write_later() {
  if (std::exchange(write_planned_, true)) return;
  loop_.defer([this, alive = alive_] {
    if (!*alive) return;
    write_planned_ = false;
    write();
  });
}

void ServerStream::update_wants() { channel_->want(can_read_, can_write_ && written_ < writing_.size()); }

void ServerStream::tell_closed() {
  if (!std::exchange(told_closed_, true)) events_.on_closed();
}

}  // namespace duet::bridge
