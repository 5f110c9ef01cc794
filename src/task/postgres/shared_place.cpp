#include "task/postgres/shared_place.h"

#include <filesystem>

#include <boost/json/object.hpp>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/value.h"
#include "task/refusal.h"
#include "task/text_or_bytes.h"

namespace duet::task::postgres {
namespace {

namespace fs = std::filesystem;

// The path without `.`, `..` and doubled slashes, as it is written: links mean something else on another machine.
std::string plain(const std::string& path) {
  std::string text = fs::path(path).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace

tl::expected<void, rpc::Error> make_portable(Submission& submission, const std::string& project) {
  if (submission.here) return {};
  submission.env.erase("PATH");
  if (submission.cwd.empty()) return {};
  const std::string root = plain(project);
  const std::string folder = plain(submission.cwd.front() == '/' ? submission.cwd : root + "/" + submission.cwd);
  if (folder == root) {
    submission.cwd.clear();
    return {};
  }
  const std::string prefix = root == "/" ? root : root + "/";
  if (folder.starts_with(prefix)) {
    submission.cwd = folder.substr(prefix.size());
    return {};
  }
  return tl::unexpected(rpc::invalid_params(
      "cwd", "a folder inside the project, since another machine may run it; or `here`", "a folder outside"));
}

std::string local_folder(const std::string& project, const std::string& folder) {
  if (folder.empty() || folder.front() == '/') return folder;
  return (project == "/" ? "" : project) + "/" + folder;
}

std::string env_text(const Submission& submission) {
  if (submission.env.empty()) return {};
  boost::json::object env;
  for (const auto& [name, value] : submission.env) env[name] = text_or_bytes(value);
  return rpc::to_text(env);
}

void add_env(Submission& submission, std::string_view env) {
  if (env.empty() || !rpc::is_valid_json(env)) return;
  const boost::json::value parsed = rpc::parse_value(env);
  if (!parsed.is_object()) return;
  for (const auto& [name, value] : parsed.get_object()) submission.env[std::string(name)] = from_text_or_bytes(value);
}

}  // namespace duet::task::postgres
