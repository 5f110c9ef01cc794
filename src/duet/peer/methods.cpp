#include "duet/peer/methods.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <stdexcept>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace duet::peer {
namespace {

boost::json::object open_rpc_param(const rpc::Param& param) {
  boost::json::object schema = param.schema();
  if (!param.otherwise.empty()) {
    schema = rpc::SchemaMaker::or_null(std::move(schema));
    schema["default"] = rpc::parse_value(param.otherwise);
  }
  boost::json::object out{{"name", param.name}, {"required", param.required}, {"schema", std::move(schema)}};
  if (!param.summary.empty()) out["description"] = param.summary;
  return out;
}

boost::json::object open_rpc_method(const Method& method) {
  boost::json::array params;
  for (const rpc::Param& param : method.params) params.push_back(open_rpc_param(param));
  return {{"name", method.name},
          {"summary", method.summary},
          {"paramStructure", "either"},
          {"params", std::move(params)},
          {"result", {{"name", "result"}, {"schema", method.result_schema()}}}};
}

std::string signature_of(const rpc::Param& param) {
  return param.name + (param.required ? ": " : "?: ") + std::string(rpc::name_of(param.type));
}

// Required ones come first, or the optional ones before them could not be left out by position.
bool can_be_given_by_position(const std::vector<rpc::Param>& params) {
  std::set<std::string_view> names;
  for (const rpc::Param& param : params) names.insert(param.name);
  return names.size() == params.size() &&
         std::ranges::is_partitioned(params, [](const rpc::Param& param) { return param.required; });
}

// For the shortest names, `ping` and `version` among them, this is cheaper than a call of memcmp.
bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  if (a.size() < 4 || a.size() > 8) return a == b;
  std::uint32_t ends[4];
  std::memcpy(&ends[0], a.data(), 4);
  std::memcpy(&ends[1], b.data(), 4);
  std::memcpy(&ends[2], a.data() + a.size() - 4, 4);
  std::memcpy(&ends[3], b.data() + b.size() - 4, 4);
  return ends[0] == ends[1] && ends[2] == ends[3];
}

}  // namespace

std::size_t Methods::NameHash::operator()(std::string_view name) const {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const std::size_t size = std::min(name.size(), sizeof first);
  if (size == 0) return 0;
  std::memcpy(&first, name.data(), size);
  std::memcpy(&last, name.data() + name.size() - size, size);
  return (first ^ (last << 7U | last >> 57U) ^ name.size()) * 0x9E3779B97F4A7C15U >> 32U;
}

AddedMethod& AddedMethod::describe(std::string_view param, std::string text) {
  const auto found = std::ranges::find(method_.params, param, &rpc::Param::name);
  if (found == method_.params.end()) {
    throw std::invalid_argument(method_.name + " has no parameter " + std::string(param));
  }
  found->summary = std::move(text);
  return *this;
}

AddedMethod& AddedMethod::unlisted() {
  method_.listed = false;
  return *this;
}

AddedMethod& AddedMethod::pipelined() {
  if (!method_.late_handler) throw std::invalid_argument("method that answers at once: " + method_.name);
  method_.pipelined = true;
  return *this;
}

AddedMethod& AddedMethod::needs(std::string_view role) {
  method_.needs = role;
  return *this;
}

AddedMethod& AddedMethod::read_only() {
  method_.read_only = true;
  return *this;
}

AddedMethod Methods::insert(Method method) {
  if (!can_be_given_by_position(method.params)) throw std::invalid_argument("params out of order: " + method.name);
  std::string name = method.name;
  const auto [added, is_new] = methods_.emplace(name, std::move(method));
  if (!is_new) throw std::invalid_argument("method name is taken: " + name);
  order_.push_back(&added->second);
  return AddedMethod(added->second);
}

const Method* Methods::find(std::string_view name) const {
  const auto found = methods_.find(name);
  return found == methods_.end() ? nullptr : &found->second;
}

const Method* MethodFinder::find(std::string_view name) {
  methods_.calls_.store(methods_.calls() + 1, std::memory_order_relaxed);
  if (recent_ != nullptr && is_same(recent_->name, name)) return recent_;
  const Method* const found = methods_.find(name);
  if (found != nullptr) recent_ = found;
  return found;
}

std::vector<MethodSummary> Methods::list() const {
  std::vector<MethodSummary> out;
  for (const Method* method : order_) {
    if (method->listed) out.push_back({method->name, method->summary});
  }
  return out;
}

std::vector<MethodSignature> Methods::describe() const {
  std::vector<MethodSignature> out;
  for (const Method* method : order_) {
    if (!method->listed) continue;
    MethodSignature& signature = out.emplace_back();
    signature.name = method->name;
    for (const rpc::Param& param : method->params) signature.params.push_back(signature_of(param));
    signature.returns = rpc::name_of(method->returns);
  }
  return out;
}

boost::json::object Methods::open_rpc(std::string_view title, std::string_view version) const {
  boost::json::array methods;
  for (const Method* method : order_) {
    if (!method->listed) continue;
    boost::json::object entry = open_rpc_method(*method);
    if (guard_) entry["x-needs"] = method->needs;
    methods.push_back(std::move(entry));
  }
  return {{"openrpc", "1.2.6"}, {"info", {{"title", title}, {"version", version}}}, {"methods", std::move(methods)}};
}

}  // namespace duet::peer
