#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/json/object.hpp>

#include "duet/api.h"
#include "duet/peer/method.h"
#include "duet/peer/typed_method.h"
#include "duet/rpc/error.h"
#include "duet/rpc/params.h"

namespace duet::peer {

struct Peer;

/// Why a peer may not call a method; none if it may.
using Guard = std::function<std::optional<rpc::Error>(const Method&, const Peer&)>;

/// A handler that reads the params from the request, unchecked.
using Handler = std::function<rpc::Json(const Request&)>;

/// What is rarely said about a method; Methods::add() returns it.
class DUET_API AddedMethod {
 public:
  explicit AddedMethod(Method& method) : method_(method) {}

  /// What a parameter is for. Throws std::invalid_argument if the method has no such one.
  AddedMethod& describe(std::string_view param, std::string text);
  template <typename Struct, typename Member>
  AddedMethod& describe(Member Struct::*member, std::string text) {
    return describe(rpc::name_of(member), std::move(text));
  }
  /// It is left out of the descriptions.
  AddedMethod& unlisted();
  /// While its answer is awaited, from the disk say, later requests of the same connection are handled; their answers
  /// come after it. Throws std::invalid_argument if the method answers at once.
  AddedMethod& pipelined();
  /// The least role that may call it: see Methods::set_guard(). Without this it is `own`, so that one of which nobody
  /// has thought is closed.
  AddedMethod& needs(std::string_view role);
  /// It changes nothing, for a guard that keeps book of what was changed.
  AddedMethod& read_only();

 private:
  Method& method_;
};

/// An entry of `listMethods`.
struct MethodSummary {
  std::string name;
  std::string description;
};
BOOST_DESCRIBE_STRUCT(MethodSummary, (), (name, description))

/// An entry of `describeMethods`. A parameter is `level: string`, or `limit?: integer` if it may be absent.
struct MethodSignature {
  std::string name;
  std::vector<std::string> params;
  std::string returns;
};
BOOST_DESCRIBE_STRUCT(MethodSignature, (), (name, params, returns))

/// The method table: what is dispatched and what is described are the same entries.
///
/// A handler takes its params as C++ values, then `const Request&` if it has to know who asks, then a `Reply<Result>`
/// if it answers later; all three may be missing. It returns its result, or nothing for null, and throws rpc::Error to
/// refuse. Requests whose params do not fit are refused before it is called. While a later answer is awaited, later
/// requests of the same connection wait, unless the method is pipelined().
class DUET_API Methods {
 public:
  Methods() = default;
  Methods(const Methods&) = delete;
  Methods& operator=(const Methods&) = delete;

  /// The handler takes no params, or one described struct of them, or one rpc::Json: all of them as they came, which
  /// nobody checks; it is empty if there are none. Throws std::invalid_argument when the name is taken, there is no
  /// handler, a parameter is there twice or a required one behind one that may be absent.
  template <typename Callable>
  AddedMethod add(std::string name, std::string summary, Callable callable) {
    check_handler<Callable>();
    static_assert(HandlerWithoutNames<Callable>,
                  "Give the names of the params, in braces before the handler, or take one struct that "
                  "BOOST_DESCRIBE_STRUCT describes.");
    using Params = typename ParamsWithoutNames<typename HandlerType<Callable>::Params>::type;
    return insert(make_method<Params>(std::move(name), std::move(summary), {}, std::move(callable)));
  }

  /// The handler takes a value for each name. Throws also if there are more names than params, or fewer.
  template <typename Callable>
  AddedMethod add(std::string name, std::string summary, std::initializer_list<std::string_view> params,
                  Callable callable) {
    check_handler<Callable>();
    static_assert(HandlerWithNames<Callable>,
                  "A param has a type that cannot be read from JSON: describe it, or use std::string for a text.");
    using Params = boost::mp11::mp_rename<typename HandlerType<Callable>::Params, NamedParams>;
    return insert(make_method<Params>(std::move(name), std::move(summary), params, std::move(callable)));
  }

  /// A method without a summary.
  template <typename Callable>
  AddedMethod add(std::string name, Callable callable) {
    return add(std::move(name), std::string(), std::move(callable));
  }

  /// Takes every request of a method that is not in the table, for who knows his methods otherwise. It is no part of
  /// the descriptions. Notifications that no method takes do not go there.
  template <typename Callable>
  void add_fallback(Callable callable) {
    check_handler<Callable>();
    using Params = typename ParamsWithoutNames<typename HandlerType<Callable>::Params>::type;
    fallback_ = make_method<Params>("", "", {}, std::move(callable));
  }
  const Method* fallback() const { return fallback_ ? &*fallback_ : nullptr; }

  const Method* find(std::string_view name) const;

  /// Is asked before the params of a call are read, if the peer has an Admission; also for each member of a batch, and
  /// for notifications. One without an Admission may call everything, and so may all as long as there is no guard.
  /// From here on open_rpc() tells what each method needs, as `x-needs`.
  void set_guard(Guard guard) { guard_ = std::move(guard); }
  std::optional<rpc::Error> refusal(const Method& method, const Peer& peer) const {
    return guard_ ? guard_(method, peer) : std::nullopt;
  }

  /// How many requests and notifications were ever handled by this table. With several threads a few may be missing.
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

  std::vector<MethodSummary> list() const;
  std::vector<MethodSignature> describe() const;
  /// An OpenRPC 1.x document, with a JSON Schema for each parameter and each result.
  boost::json::object open_rpc(std::string_view title, std::string_view version) const;

 private:
  friend class MethodFinder;

  // Both ends of a name tell the methods of one program apart well enough, and cost little to read.
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const;
  };

  template <typename Callable>
  static constexpr void check_handler() {
    static_assert(HasSignature<Callable>, "A handler is a function or a lambda without `auto` among what it takes.");
    static_assert(HandlerShape<Callable>,
                  "A handler takes its params, then `const Request&`, then a Reply; with a Reply it returns nothing.");
    static_assert(HandlerWithResult<Callable>,
                  "The result has no JSON: describe it with BOOST_DESCRIBE_STRUCT or BOOST_DESCRIBE_ENUM.");
  }

  AddedMethod insert(Method method);

  std::unordered_map<std::string, Method, NameHash, std::equal_to<>> methods_;
  std::vector<const Method*> order_;  // as they were added
  Guard guard_;
  std::optional<Method> fallback_;
  mutable std::atomic<std::uint64_t> calls_ = 0;
};

/// Finds methods for one caller, which tends to ask for the same one again.
class MethodFinder {
 public:
  explicit MethodFinder(const Methods& methods) : methods_(methods) {}

  /// For a call, which is counted.
  const Method* find(std::string_view name);
  const Methods& table() const { return methods_; }

 private:
  const Methods& methods_;
  const Method* recent_ = nullptr;
};

}  // namespace duet::peer
