#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "bridge/inquiry.h"
#include "bridge/symbol_list.h"
#include "duet/rpc/error.h"

namespace duet::bridge {

/// What the servers that run know by a name (`workspace/symbol`), all of them together. One that fails is left out as
/// long as another one answers, and named in a note. Whoever begins it makes an inquiry of each server. For the loop's
/// thread only.
class ProjectSearch : public Asking, public std::enable_shared_from_this<ProjectSearch> {
 public:
  struct Result {
    std::vector<FoundSymbol> symbols = {};
    boost::json::object standing = {};  ///< `{server, complete, indexing?, note?}`, of all that have answered
  };
  using Done = std::function<void(const tl::expected<Result, rpc::Error>&)>;

  /// `count`: of the inquiries there will be.
  ProjectSearch(std::string wanted, base::Duration patience, std::size_t count, Done done)
      : wanted_(std::move(wanted)), patience_(patience), left_(count), done_(std::move(done)) {}

  /// What is said of servers that do not offer it.
  static Failure not_offered_by(const std::string& servers);

  void add(std::shared_ptr<Inquiry> inquiry) { inquiries_.push_back(std::move(inquiry)); }
  void cancel() override;

  /// The step of an inquiry whose server is ready, and how each ends.
  void ask(Inquiry& inquiry);
  void take_end(const std::string& server, const CallResult& end);

 private:
  void take(Inquiry& inquiry, const boost::json::value& symbols, PlaceFinder& places);

  std::string wanted_;
  base::Duration patience_;
  std::size_t left_;
  Done done_;
  std::vector<std::shared_ptr<Inquiry>> inquiries_;
  std::optional<Result> result_;
  std::optional<rpc::Error> error_;
  std::string missing_;  // servers that did not answer
};

}  // namespace duet::bridge
