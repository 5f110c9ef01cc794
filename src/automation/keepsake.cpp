#include "automation/keepsake.h"

namespace duet::automation {

void Keepsake::save(Done done) {
  waiting_.push_back(std::move(done));
  if (!writing_) write();
}

void Keepsake::write() {
  writing_ = true;
  actions_.remember(text_(), [this, alive = std::weak_ptr(alive_), waited = std::exchange(waiting_, {})](bool kept) {
    if (!alive.expired()) written(kept, waited);
  });
}

void Keepsake::written(bool kept, const std::vector<Done>& waited) {
  writing_ = false;
  kept_ = kept;
  for (const Done& done : waited) {
    if (done) done(kept);
  }
  if (!waiting_.empty() && !writing_) write();
}

}  // namespace duet::automation
