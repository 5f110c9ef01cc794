#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "duet/api.h"
#include "duet/peer/answer.h"
#include "duet/rpc/error.h"

namespace duet::peer {

class Dispatcher;
struct OpenRequest;

/// The right to answer one request, once. Movable, so that it can be kept until the answer is known;
/// let go of without an answer, the request is refused as an internal error. After the caller has
/// cancelled or gone an answer does nothing. For the loop's thread only.
class DUET_API Reply {
 public:
  Reply(Reply&&) noexcept = default;
  Reply& operator=(Reply&& other) noexcept;
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  ~Reply();

  void ok(const Answer& answer);
  void fail(const rpc::Error& error);

  /// Nobody waits for the answer any more.
  bool abandoned() const;
  /// Called once when the caller cancels or goes away before the answer; at once if that has happened already.
  void on_abandoned(std::function<void()> callback);

 private:
  friend class Dispatcher;
  explicit Reply(std::shared_ptr<OpenRequest> request) : request_(std::move(request)) {}
  void let_go();

  std::shared_ptr<OpenRequest> request_;
};

}  // namespace duet::peer
