#include "task/handles.h"

#include <sys/random.h>

#include <array>
#include <utility>

#include "duet/base/all_calls.h"
#include "duet/base/fd.h"
#include "task/refusal.h"

namespace duet::task {
namespace {

constexpr std::size_t secret_characters = 26;

std::string random_secret() {
  std::array<unsigned char, secret_characters> bytes{};
  base::check_call(static_cast<int>(getrandom(bytes.data(), bytes.size(), 0)), "getrandom");
  std::string secret;
  for (const unsigned char byte : bytes) secret += "abcdefghijklmnopqrstuvwxyz234567"[byte & 31];
  return secret;
}

std::string name_in_store(TaskId id) { return "handle/" + std::to_string(id); }

std::string handle_of(TaskId id, std::string_view secret) { return to_text(id) + '-' + std::string(secret); }

}  // namespace

std::string new_handle(TaskId id) { return handle_of(id, random_secret()); }

Companion Handles::for_new_task() {
  return {.write = [secret = random_secret()](StoreWriter& writer, TaskId id) {
    writer.remember(name_in_store(id), secret);
  }};
}

void Handles::give(TaskId id, Given given) {
  const auto known = store_.read([id](StoreReader& tasks) { return tasks.recall(name_in_store(id)); });
  if (!known) return given(tl::unexpected(known.error()));
  if (*known) return given(handle_of(id, **known));
  const auto [place, is_new] = giving_.try_emplace(id);
  place->second.waiting.push_back(std::move(given));
  if (!is_new) return;
  place->second.secret = random_secret();
  Change change{.bytes = 256};
  change.apply = [id, secret = place->second.secret](StoreWriter& writer) {
    writer.remember(name_in_store(id), secret);
  };
  change.done = lifetime_.bind([this, id](bool kept) {
    const auto over = giving_.extract(id);
    tl::expected<std::string, rpc::Error> answer = handle_of(id, over.mapped().secret);
    if (!kept) answer = tl::unexpected(store_.refusal());
    if (kept && forget_if_gone(id)) answer = tl::unexpected(unknown_task(to_text(id)));
    base::call_all(over.mapped().waiting, answer);
  });
  store_.write(std::move(change));
}

// It may have been removed before its handle was on disk; then nobody else would forget that.
bool Handles::forget_if_gone(TaskId id) {
  const auto task = store_.read([id](StoreReader& tasks) { return tasks.standing(id); });
  const bool is_gone = task && !*task;
  if (is_gone) store_.write({.apply = [id](StoreWriter& writer) { forget(writer, id); }, .bytes = 256});
  return is_gone;
}

tl::expected<TaskId, rpc::Error> Handles::find(std::string_view handle) {
  const std::size_t end = handle.rfind('-');
  const std::optional<TaskId> id = end == handle.npos ? std::nullopt : parse_task_id(handle.substr(0, end));
  if (!id) return tl::unexpected(unknown_task(handle));
  const auto secret = store_.read([&](StoreReader& tasks) { return tasks.recall(name_in_store(*id)); });
  if (!secret) return tl::unexpected(secret.error());
  if (!*secret || **secret != handle.substr(end + 1)) return tl::unexpected(unknown_task(handle));
  return *id;
}

bool Handles::has_one(StoreReader& tasks, TaskId id) { return tasks.recall(name_in_store(id)).has_value(); }

void Handles::forget(StoreWriter& writer, TaskId id) { writer.forget(name_in_store(id)); }

}  // namespace duet::task
