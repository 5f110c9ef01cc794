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

boost::json::object schema_of(const rpc::Param& param) {
  boost::json::object schema;
  if (param.type != rpc::Type::any) schema["type"] = rpc::name_of(param.type);
  if (!param.accepted.empty()) schema["enum"] = boost::json::array(param.accepted.begin(), param.accepted.end());
  return schema;
}

boost::json::object open_rpc_param(const rpc::Param& param) {
  boost::json::object out{{"name", param.name}, {"required", param.required}, {"schema", schema_of(param)}};
  if (!param.summary.empty()) out["description"] = param.summary;
  return out;
}

boost::json::object open_rpc_method(const Method& method) {
  boost::json::array params;
  for (const rpc::Param& param : method.params) params.push_back(open_rpc_param(param));
  boost::json::object result_schema;
  if (method.returns != rpc::name_of(rpc::Type::any)) result_schema["type"] = method.returns;
  return {{"name", method.name},
          {"summary", method.summary},
          {"paramStructure", "either"},
          {"params", std::move(params)},
          {"result", {{"name", "result"}, {"schema", std::move(result_schema)}}}};
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

void Methods::add(Method method) {
  if (!method.handler && !method.late_handler) throw std::invalid_argument("method without a handler: " + method.name);
  if (!can_be_given_by_position(method.params)) throw std::invalid_argument("params out of order: " + method.name);
  std::string name = method.name;
  if (!methods_.emplace(name, std::move(method)).second) throw std::invalid_argument("method name is taken: " + name);
  order_.push_back(std::move(name));
}

void Methods::add(std::string name, Handler handler) {
  Method method;
  method.name = std::move(name);
  method.handler = std::move(handler);
  method.checks_params = false;
  add(std::move(method));
}

const Method* Methods::find(std::string_view name) const {
  if (recent_ != nullptr && is_same(recent_->name, name)) return recent_;
  const auto found = methods_.find(name);
  if (found == methods_.end()) return nullptr;
  return recent_ = &found->second;
}

boost::json::value Methods::list() const {
  boost::json::array out;
  for (const std::string& name : order_) {
    const Method& method = *find(name);
    if (method.listed) out.push_back({{"name", method.name}, {"description", method.summary}});
  }
  return out;
}

boost::json::value Methods::describe() const {
  boost::json::array out;
  for (const std::string& name : order_) {
    const Method& method = *find(name);
    if (!method.listed) continue;
    boost::json::array params;
    for (const rpc::Param& param : method.params) {
      params.push_back(
          boost::json::value(param.name + (param.required ? ": " : "?: ") + std::string(rpc::name_of(param.type))));
    }
    out.push_back({{"name", method.name}, {"params", std::move(params)}, {"returns", method.returns}});
  }
  return out;
}

boost::json::value Methods::open_rpc(std::string_view title, std::string_view version) const {
  boost::json::array methods;
  for (const std::string& name : order_) {
    if (const Method& method = *find(name); method.listed) methods.push_back(open_rpc_method(method));
  }
  return {{"openrpc", "1.2.6"}, {"info", {{"title", title}, {"version", version}}}, {"methods", std::move(methods)}};
}

}  // namespace duet::peer
