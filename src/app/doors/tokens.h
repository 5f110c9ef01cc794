#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "app/doors/token_file.h"
#include "duet/base/clock.h"
#include "duet/peer/conversation.h"
#include "duet/rpc/error.h"

namespace duet::app {

inline constexpr const char* tokens_name = "tokens";

struct TokenLimits {
  std::size_t made = 256;     ///< by hand; the next one is refused
  std::size_t browsers = 64;  ///< the next one pushes out the one that was not used for the longest time
};

/// What tells whoever opens a network door that he may: the tokens, in the state folder's file `tokens` (0600).
///
/// Of a token only its SHA-256 is kept, beside name, role and times. What is created, revoked or logged out is on disk
/// when the call returns: written beside, synced and renamed. A file that cannot be understood lets nobody in, is told
/// as a problem, and stays as it is until all tokens are revoked.
///
/// A browser's token ends when it was not used for `session`. Used it is by find(), and as long as a connection holds
/// its admission. Its last use is written down when that is a hundredth of a session, and at least a minute, later than
/// what is written: so much earlier it may end after a crash.
///
/// For one thread. Time is an argument; nothing ends by itself: tick() is called at next_end().
class Tokens {
 public:
  struct Events {
    /// A token has ended: it was revoked, logged out or pushed out, or has expired. Called after that is so.
    std::function<void(const std::shared_ptr<const peer::Admission>&)> on_ended = {};
    std::function<void(std::string)> on_problem = {};  ///< what is wrong with the file; empty: nothing any more
  };
  /// A new token. Nobody can tell its text a second time.
  struct Made {
    std::string token;
    std::shared_ptr<const peer::Admission> admission;
  };
  struct Listed {
    std::string name;
    std::string role;
    bool browser = false;
    base::UtcTime created = {};
    std::optional<base::UtcTime> used = {};
    std::optional<base::UtcTime> expires = {};
  };

  static constexpr std::chrono::seconds usual_session = std::chrono::hours(24 * 7);

  /// `folder` is the state folder's descriptor, `shown` its name for people. Reads the file.
  Tokens(int folder, std::string shown, Events events, TokenLimits limits = {});
  Tokens(const Tokens&) = delete;
  Tokens& operator=(const Tokens&) = delete;
  ~Tokens() = default;

  /// As what the holder of a token comes in, always the same object for one token; none: he does not.
  std::shared_ptr<const peer::Admission> find(std::string_view token, base::UtcTime now);

  tl::expected<Made, rpc::Error> create(const std::string& name, std::string_view role,
                                        std::optional<base::UtcTime> expires, base::UtcTime now);
  /// For a browser that has shown a login code; its name is `browser-N`.
  tl::expected<Made, rpc::Error> create_for_browser(std::string_view role, base::UtcTime now);
  tl::expected<std::vector<Listed>, rpc::Error> list(base::UtcTime now);

  /// Ends tokens, also where that cannot be written down: then the error says so. One with that name; refused if there
  /// is none.
  tl::expected<void, rpc::Error> revoke(std::string_view name);
  /// The one that let somebody in, if it has not ended.
  tl::expected<void, rpc::Error> log_out(const peer::Admission& admission);
  /// All of them, also those of a damaged file. Their names.
  tl::expected<std::vector<std::string>, rpc::Error> revoke_all();

  /// Ends what has expired.
  void tick(base::UtcTime now);
  /// When tick() is due; none: never, as things are. A find() may only put it off.
  std::optional<base::UtcTime> next_end() const;
  /// How long a browser's token lives without being used; also of those there are.
  void set_session(std::chrono::seconds session);

  /// What is wrong with the file; empty: nothing.
  const std::string& problem() const { return problem_; }

 private:
  struct Entry {
    SavedToken saved;
    std::shared_ptr<peer::Admission> admission;
    std::optional<base::UtcTime> used = {};  // saved.used is what was written
    bool is_held() const { return admission.use_count() > 1; }
  };

  void load();
  bool save();
  void set_problem(std::string problem);
  rpc::Error unwritten(std::string_view what) const;
  std::optional<rpc::Error> refusal() const;

  tl::expected<Made, rpc::Error> add(SavedToken saved, base::UtcTime now);
  Entry entry_of(SavedToken saved) const;
  tl::expected<void, rpc::Error> end(std::vector<Entry>::iterator ended);
  void tell_ended(const std::vector<Entry>& ended);
  void push_out_a_browser(std::vector<Entry>& ended);
  std::size_t count(bool browsers) const;
  bool is_taken(std::string_view name) const;

  std::optional<base::UtcTime> end_of(const Entry& entry) const;
  bool has_ended(const Entry& entry, base::UtcTime now) const;
  void note_use(Entry& entry, base::UtcTime now) const;
  bool is_worth_writing(const Entry& entry) const;
  std::chrono::seconds noting_interval() const;

  int folder_;
  std::string shown_;
  Events events_;
  TokenLimits limits_;
  std::chrono::seconds session_ = usual_session;
  std::uint64_t browsers_ = 0;
  std::vector<Entry> entries_;
  bool damaged_ = false;
  std::string problem_;
  base::UtcTime looked_ = {};  // by the last tick or use
};

}  // namespace duet::app
