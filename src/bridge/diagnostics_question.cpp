#include "bridge/diagnostics_question.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <boost/json/object.hpp>

#include "bridge/shapes.h"
#include "bridge/standing.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

using std::chrono::milliseconds;

// Some servers publish what they find in several portions: typescript-language-server, which gives no versions, first
// what the syntax shows, and what the types show whenever it knows.
constexpr milliseconds quiet_with_version{200};
constexpr milliseconds quiet_without{1000};
// After a change, what comes without a version may still be about the text before: servers that look at the old text
// first, or gather changes for half a second as pylsp does, publish again within this time.
constexpr milliseconds quiet_after_change{2000};
constexpr milliseconds before_next_pull{200};
constexpr int changed_meanwhile = -32801;
constexpr int server_cancelled = -32802;

class DiagnosticsQuestion : public std::enable_shared_from_this<DiagnosticsQuestion> {
 public:
  DiagnosticsQuestion(transport::Loop& loop, Inquiry& inquiry, std::string path, base::Duration wait,
                      std::optional<std::uint64_t> asker)
      : loop_(loop),
        inquiry_(inquiry.shared_from_this()),
        path_(std::move(path)),
        asker_(asker),
        begun_(loop.now()),
        wait_(wait),
        pulls_(server().capabilities().pulls_diagnostics) {}

  void begin() {
    inquiry_->at_end = [self = shared_from_this()] { self->clean_up(); };
    listener_ = server().diagnostics().listen(
        path_, {.published = [this, self = shared_from_this()] { inquiry_->run([this](Inquiry&) { take_news(); }); },
                .down = [inquiry = inquiry_](const Failure& why) { inquiry->fail(why); }});
    look();
  }

 private:
  LanguageServer& server() { return inquiry_->server(); }
  base::Duration left() const { return begun_ + wait_ - loop_.now(); }
  bool time_is_up() const { return left() <= base::Duration::zero(); }

  void take_news() {
    server().diagnostics().note_pause(loop_.now() - heard_);
    heard_ = loop_.now();
    look();
  }

  // How long the server has to be silent until what it has published is all that it has to say.
  base::Duration quiet_time(const Diagnostics::Published& published, bool sure) {
    if (published.version) return quiet_with_version;
    if (sure) return quiet_without;
    return std::max<base::Duration>(quiet_after_change, 2 * server().diagnostics().longest_pause());
  }

  // The text may change at any time, so every look begins with it.
  void look() {
    server().check_load();
    const Document* document = server().documents().look(path_);
    if (document == nullptr) throw rpc::invalid_params("file", "a readable file", "string");
    if (document->version != version_) {
      version_ = document->version;
      heard_ = loop_.now();
      pulled_.reset();
    }
    if (pulls_) return look_with_pull();
    const Diagnostics::Published* published = server().diagnostics().find(path_);
    const bool sure = published != nullptr && is_for_text_of(*published, *document);
    const bool likely =
        published != nullptr && !published->version && published->sent_version == document->version && !sure;
    const base::TimePoint end = begun_ + wait_;
    if (!sure && !likely) return time_is_up() ? answer(false, "pending") : look_at(end);
    const base::TimePoint quiet = published->at + quiet_time(*published, sure);
    if (loop_.now() < quiet && !time_is_up()) return look_at(std::min(quiet, end));
    // Silence proves nothing of a server that nobody knows: the findings of the text before may still be on their way.
    answer(sure || (server().definition().settles && loop_.now() >= quiet), "unversioned");
  }

  void look_with_pull() {
    if (pulled_) return answer(true, "");
    if (pulling_) return;
    if (time_is_up()) return answer(false, "pending");
    pulling_ = true;
    const std::string params = R"({"textDocument":{"uri":)" + rpc::quoted(server().documents().find(path_)->uri) + "}}";
    inquiry_->call("textDocument/diagnostic", params, left(),
                   [this, self = shared_from_this(), version = version_](Inquiry&, CallResult result) {
                     take_pulled(std::move(result), version);
                   });
  }

  void take_pulled(CallResult result, std::int64_t version) {
    pulling_ = false;
    if (result.error) {
      const int code = result.error->code();
      if (code == rpc::code::method_not_found) {
        pulls_ = false;
        return look();
      }
      if (code != changed_meanwhile && code != server_cancelled && !time_is_up()) throw *result.error;
      return time_is_up() ? answer(false, "pending") : look_at(loop_.now() + before_next_pull);
    }
    const boost::json::value tree = rpc::parse_value(result.text);
    const boost::json::object* report = tree.if_object();
    const boost::json::value* items = report != nullptr ? report->if_contains("items") : nullptr;
    const bool still_wanted = version == version_;
    if (still_wanted) pulled_ = items != nullptr && items->is_array() ? items->get_array() : boost::json::array();
    look();
  }

  void answer(bool fresh, std::string_view reason) {
    boost::json::array items = pulled_.value_or(boost::json::array());
    const Document* document = server().documents().find(path_);
    const Diagnostics::Published* published = server().diagnostics().find(path_);
    // Next to what it is asked for, a server may publish what it finds by other means.
    if (published != nullptr && (!pulls_ || (document != nullptr && is_for_text_of(*published, *document)))) {
      for (const boost::json::value& item : published->items) {
        if (std::find(items.begin(), items.end(), item) == items.end()) items.push_back(item);
      }
    }
    if (fresh && !server().documents().is_current(path_, asker_)) {
      fresh = false;
      reason = "changed";
      const bool may_catch_up = document != nullptr && !document->owner;
      if (may_catch_up && !time_is_up()) return look();
    }
    PlaceFinder places(server().documents(), server().capabilities().encoding);
    boost::json::object out{{"file", path_text(path_)}};
    add_standing(out, server(), path_);
    add_freshness(out, fresh, reason);
    out["diagnostics"] = shape_diagnostics(items, path_, places);
    inquiry_->answer({.text = rpc::to_text(out)});
  }

  void look_at(base::TimePoint when) {
    timer_ = loop_.at(when, [this, self = shared_from_this()] {
      timer_.reset();
      inquiry_->run([this](Inquiry&) { look(); });
    });
  }

  void clean_up() {
    timer_.reset();
    server().diagnostics().unlisten(listener_);
  }

  transport::Loop& loop_;
  std::shared_ptr<Inquiry> inquiry_;  // and it owns this until it is over
  std::string path_;
  std::optional<std::uint64_t> asker_;
  base::TimePoint begun_;
  base::Duration wait_;
  bool pulls_;
  bool pulling_ = false;
  std::int64_t version_ = 0;
  base::TimePoint heard_;  // when the server was sent the text, or published something since
  std::optional<boost::json::array> pulled_;
  std::optional<transport::Loop::Timer> timer_;
  std::uint64_t listener_ = 0;
};

}  // namespace

void ask_for_diagnostics(transport::Loop& loop, Inquiry& inquiry, const std::string& path, base::Duration wait,
                         std::optional<std::uint64_t> asker) {
  std::make_shared<DiagnosticsQuestion>(loop, inquiry, path, wait, asker)->begin();
}

}  // namespace duet::bridge
