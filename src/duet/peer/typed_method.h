#pragma once

#include <concepts>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>

#include "duet/peer/method.h"
#include "duet/peer/reply.h"
#include "duet/rpc/json.h"
#include "duet/rpc/params.h"
#include "duet/rpc/schema.h"

namespace duet::peer {

/// What a callable takes and returns. One with a template for its call operator says too little.
template <typename Callable>
struct Signature;
template <typename R, typename... Each>
struct Signature<R (*)(Each...)> {
  using Result = R;
  using Arguments = boost::mp11::mp_list<std::remove_cvref_t<Each>...>;
};
template <typename R, typename... Each>
struct Signature<R (*)(Each...) noexcept> : Signature<R (*)(Each...)> {};
template <typename C, typename R, typename... Each>
struct Signature<R (C::*)(Each...)> : Signature<R (*)(Each...)> {};
template <typename C, typename R, typename... Each>
struct Signature<R (C::*)(Each...) const> : Signature<R (*)(Each...)> {};
template <typename C, typename R, typename... Each>
struct Signature<R (C::*)(Each...) noexcept> : Signature<R (*)(Each...)> {};
template <typename C, typename R, typename... Each>
struct Signature<R (C::*)(Each...) const noexcept> : Signature<R (*)(Each...)> {};
template <typename Callable>
requires requires { &Callable::operator(); }
struct Signature<Callable> : Signature<decltype(&Callable::operator())> {};

template <typename Callable>
concept HasSignature = requires {
  typename Signature<Callable>::Arguments;
};

template <typename T>
using IsRequest = std::is_same<T, Request>;

template <typename T>
struct IsReply : std::false_type {};
template <typename R>
struct IsReply<Reply<R>> : std::true_type {};

// What is returned, or what the one reply takes.
template <typename Returned, typename Replies>
struct ResultType {
  using type = Returned;
};
template <typename Returned, typename R>
struct ResultType<Returned, boost::mp11::mp_list<Reply<R>>> {
  using type = R;
};

/// A handler's signature, sorted: its params, whether it wants the request, and its reply if it answers later.
template <HasSignature Callable>
struct HandlerType {
  using Arguments = typename Signature<Callable>::Arguments;
  using Returned = std::remove_cvref_t<typename Signature<Callable>::Result>;
  using Requests = boost::mp11::mp_copy_if<Arguments, IsRequest>;
  using Replies = boost::mp11::mp_copy_if<Arguments, IsReply>;
  using Params = boost::mp11::mp_remove_if<boost::mp11::mp_remove_if<Arguments, IsRequest>, IsReply>;

  static constexpr bool wants_request = boost::mp11::mp_size<Requests>::value > 0;
  static constexpr bool answers_later = boost::mp11::mp_size<Replies>::value > 0;
  static constexpr bool is_in_order = boost::mp11::mp_size<Requests>::value <= 1 &&
                                      boost::mp11::mp_size<Replies>::value <= 1 &&
                                      std::same_as<Arguments, boost::mp11::mp_append<Params, Requests, Replies>>;

  using Result = typename ResultType<Returned, Replies>::type;
};

template <HasSignature Callable>
using HandlerResult = typename HandlerType<Callable>::Result;

/// Params first, then `const Request&`, then a Reply; and a result, or a Reply, but not both.
template <typename Callable>
concept HandlerShape = HasSignature<Callable> && HandlerType<Callable>::is_in_order &&
    (!HandlerType<Callable>::answers_later || std::is_void_v<typename HandlerType<Callable>::Returned>);

template <typename Callable>
concept HandlerWithResult = HandlerShape<Callable> &&
    (std::is_void_v<HandlerResult<Callable>> || rpc::Writable<HandlerResult<Callable>>);

// How the params of a handler are described, and read into what it is called with.

struct NoParams {
  static std::vector<rpc::Param> describe(std::initializer_list<std::string_view>) { return {}; }
  static std::tuple<> read(const Method&, const Request&) { return {}; }
};

struct RawParams {
  static std::vector<rpc::Param> describe(std::initializer_list<std::string_view>) { return {}; }
  static std::tuple<const rpc::Json&> read(const Method&, const Request& request) { return {request.params}; }
};

template <rpc::StructType Struct>
struct StructParams {
  static std::vector<rpc::Param> describe(std::initializer_list<std::string_view>) {
    return rpc::describe_params<Struct>();
  }
  static std::tuple<Struct> read(const Method& method, const Request& request) {
    std::tuple<Struct> values;
    rpc::read_params(method.params, request.params.text(), std::get<0>(values));
    return values;
  }
};

template <typename... Values>
struct NamedParams {
  static std::vector<rpc::Param> describe(std::initializer_list<std::string_view> names) {
    if (names.size() != sizeof...(Values)) {
      throw std::invalid_argument("as many names as the handler has params are needed");
    }
    const auto* name = names.begin();
    std::vector<rpc::Param> list;
    (list.push_back(rpc::describe_param<Values>(std::string(*name++))), ...);
    return list;
  }
  static std::tuple<Values...> read(const Method& method, const Request& request) {
    std::tuple<Values...> values;
    rpc::read_params(method.params, request.params.text(), values);
    return values;
  }
};

struct UnknownParams {};

template <typename Params>
struct ParamsWithoutNames {
  using type = UnknownParams;
};
template <>
struct ParamsWithoutNames<boost::mp11::mp_list<>> {
  using type = NoParams;
};
template <>
struct ParamsWithoutNames<boost::mp11::mp_list<rpc::Json>> {
  using type = RawParams;
};
template <rpc::StructType Struct>
struct ParamsWithoutNames<boost::mp11::mp_list<Struct>> {
  using type = StructParams<Struct>;
};

/// A handler that can be added without names: no params, one described struct, or one Json for all of them.
template <typename Callable>
concept HandlerWithoutNames = HandlerWithResult<Callable> &&
    !std::same_as<typename ParamsWithoutNames<typename HandlerType<Callable>::Params>::type, UnknownParams>;

template <typename T>
using IsReadable = std::bool_constant<rpc::Readable<T>>;

/// A handler that can be added with a name for each of its params.
template <typename Callable>
concept HandlerWithNames =
    HandlerWithResult<Callable> && boost::mp11::mp_all_of<typename HandlerType<Callable>::Params, IsReadable>::value;

/// What a handler is called with: its params, the request if it wants that, and more. What it returns may point into
/// it.
template <typename Params, typename Callable, typename... More>
auto arguments_of(const Method& method, const Request& request, More&&... more) {
  if constexpr (HandlerType<Callable>::wants_request) {
    return std::tuple_cat(Params::read(method, request), std::tuple<const Request&>(request),
                          std::forward_as_tuple(std::forward<More>(more)...));
  } else {
    return std::tuple_cat(Params::read(method, request), std::forward_as_tuple(std::forward<More>(more)...));
  }
}

/// Its result as JSON, or null if there is none.
template <typename Params, typename Callable>
rpc::Json result_of(Callable& callable, const Method& method, const Request& request) {
  using Result = HandlerResult<Callable>;
  if constexpr (std::is_void_v<Result>) {
    std::apply(callable, arguments_of<Params, Callable>(method, request));
    return rpc::Json::view("null");
  } else if constexpr (rpc::JsonType<Result>) {
    rpc::Json result = std::apply(callable, arguments_of<Params, Callable>(method, request));
    if (result.empty()) result = rpc::Json::view("null");
    return result;
  } else {
    return rpc::Json(std::apply(callable, arguments_of<Params, Callable>(method, request)));
  }
}

template <typename Callable>
void require_target(const Callable& callable, const std::string& name) {
  if constexpr (std::is_pointer_v<Callable> || requires { callable.target_type(); }) {
    if (!callable) throw std::invalid_argument("method without a handler: " + name);
  }
}

/// An entry of the table for a handler whose params are of this kind.
template <typename Params, typename Callable>
Method make_method(std::string name, std::string summary, std::initializer_list<std::string_view> names,
                   Callable callable) {
  using Result = HandlerResult<Callable>;
  require_target(callable, name);
  Method method;
  method.name = std::move(name);
  method.summary = std::move(summary);
  method.params = Params::describe(names);
  method.returns = rpc::type_of<Result>();
  method.result_schema = &rpc::schema_of<Result, rpc::SchemaMaker::Of::written>;
  if constexpr (HandlerType<Callable>::answers_later) {
    method.late_handler = [callable = std::move(callable)](const Method& self, const Request& request,
                                                           AnyReply reply) mutable {
      std::apply(callable, arguments_of<Params, Callable>(self, request, Reply<Result>(std::move(reply))));
    };
  } else {
    method.handler = [callable = std::move(callable)](const Method& self, const Request& request) mutable {
      return result_of<Params>(callable, self, request);
    };
  }
  return method;
}

}  // namespace duet::peer
