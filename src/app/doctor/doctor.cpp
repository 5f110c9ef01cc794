#include "app/doctor/doctor.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>
#include <variant>

#include "app/project/user_state.h"
#include "duet/base/disk_full.h"
#include "duet/transport/unix_socket.h"
#include "task/agents.h"
#include "task/store.h"
#include "task/store_files.h"

namespace duet::app {
namespace {

using Verdict = Finding::Verdict;

constexpr std::string_view claude = "claude";

std::string path_in(const process::Environment& environment) {
  const auto found = environment.find("PATH");
  return found == environment.end() ? std::string() : found->second;
}

bool is_found(const std::string& program, const process::Environment& environment) {
  return !process::find_program(program, path_in(environment)).empty();
}

bool sees_prompt(const task::Agent& agent) {
  const auto has_prompt = [](const std::string& word) { return word.find("{prompt}") != word.npos; };
  return agent.prompt_on_stdin || std::ranges::any_of(agent.command, has_prompt);
}

Finding check_agent(const std::string& name, const task::Agent& agent, const process::Environment& environment,
                    const std::string& root) {
  const std::string& program = agent.command.front();
  const bool is_of_project = program.find('/') != program.npos && !program.starts_with('/');
  if (!is_found(is_of_project ? root + '/' + program : program, environment)) {
    return {"agent " + name, Verdict::wrong, program + " is not found: install it, or change its command"};
  }
  if (sees_prompt(agent)) return {"agent " + name, Verdict::good, program};
  return {"agent " + name, Verdict::note,
          program + " never sees a prompt: write {prompt} into one of its arguments, or stdin = \"prompt\""};
}

Finding default_agent(const task::TaskSettings& settings, const process::Environment& environment) {
  const std::string name = settings.default_agent.empty() ? std::string(claude) : settings.default_agent;
  const bool found = name != claude || settings.agents.contains(name) || is_found(name, environment);
  if (found) return {"default agent", Verdict::good, name};
  if (!settings.default_agent.empty()) {
    return {"default agent", Verdict::wrong, name + " is not on the PATH: install it, or change default_agent"};
  }
  return {"default agent", Verdict::note,
          "none: tasks must name one with --agent, or default_agent in .duet-rpc.toml must; claude is not on the PATH"};
}

constexpr const char* place_subject = "place";

// A folder below another one, as a start would open it; nothing to look into if it is not there yet.
struct Place {
  base::Fd folder;
  std::optional<Finding> wrong;
};

Finding wrong_place(const std::string& text) { return {place_subject, Verdict::wrong, text}; }

Place look_into(int above, const char* name, const std::string& shown, int flags) {
  base::Fd folder(openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
  if (folder || errno == ENOENT) return {std::move(folder), std::nullopt};
  const int error = errno;
  const bool no_folder = error == ENOTDIR || error == ELOOP;
  return {base::Fd(), wrong_place(shown + " cannot be opened (" + std::generic_category().message(error) + "): " +
                                  (no_folder ? "what is there is not the daemon's own: move it away"
                                             : "the daemon needs a folder that it may use; --project names another"))};
}

// As much as a daemon writes when it starts, into a file without a name, so that nothing is left. Where there are no
// such files, nobody knows.
bool has_no_room(int folder) {
  constexpr std::size_t needed = 256 * 1024;
  const base::Fd file(openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!file) return base::is_disk_full(errno);
  const std::string bytes(needed, '\0');
  const ssize_t written = write(file.get(), bytes.data(), bytes.size());
  return written >= 0 ? static_cast<std::size_t>(written) < bytes.size() : base::is_disk_full(errno);
}

std::optional<Finding> check_writable(int folder, const std::string& shown) {
  const bool may_write = faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) == 0;
  if (may_write && !has_no_room(folder)) return std::nullopt;
  if (may_write) {
    return wrong_place("nothing can be written to " + shown + " (" + std::generic_category().message(ENOSPC) +
                       "): make room on its disk; --project names another folder");
  }
  return wrong_place("nothing can be written to " + shown + " (" + std::generic_category().message(errno) +
                     "): the daemon needs a folder that it may write to; --project names another");
}

std::optional<Finding> check_entry(int folder, const char* name, mode_t type, const std::string& what) {
  struct stat status {};
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || (status.st_mode & S_IFMT) == type) {
    return std::nullopt;
  }
  return wrong_place(std::string(state_path) + '/' + name + " is " + what + ": move it away");
}

bool has_file(const StateFolder& folder, const std::string& name, mode_t type) {
  struct stat status {};
  return fstatat(folder.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         (status.st_mode & S_IFMT) == type;
}

std::vector<std::string> names_in(int folder, const char* name) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
                                                    closedir);
  std::vector<std::string> names;
  if (!entries) return names;
  while (const dirent* const entry = readdir(entries.get())) names.emplace_back(entry->d_name);
  return names;
}

bool somebody_listens(const std::string& path) {
  try {
    transport::connect_unix(path, std::chrono::milliseconds(100));
    return true;
  } catch (const std::system_error& error) {
    return error.code().value() != ECONNREFUSED;
  }
}

// Sockets of keepers that were killed. Those of keepers that live belong to tasks that go on.
std::vector<std::string> dead_keepers(const StateFolder& folder) {
  std::vector<std::string> dead;
  for (const std::string& name : names_in(folder.descriptor(), task::output_folder)) {
    const std::string path = std::string(task::output_folder) + '/' + name;
    if (name.ends_with(".sock") && !somebody_listens(folder.path_of(path))) dead.push_back(path);
  }
  return dead;
}

std::vector<Finding> findings_of(const std::vector<std::optional<Finding>>& looked_at) {
  std::vector<Finding> findings;
  for (const std::optional<Finding>& finding : looked_at) {
    if (finding) findings.push_back(*finding);
  }
  if (findings.empty()) findings.push_back({place_subject, Verdict::good, "a daemon may be started here"});
  return findings;
}

// The nearest folder that is there must take the next one.
std::vector<Finding> check_place_of_user() {
  std::string path = user_state_path();
  if (path.empty()) return {wrong_place("there is no place for the user's state: set HOME or XDG_STATE_HOME")};
  while (access(path.c_str(), F_OK) != 0 && path.size() > 1) path.resize(std::max<std::size_t>(path.rfind('/'), 1));
  const base::Fd folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return findings_of({check_writable(folder.get(), path)});
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "good";
    case Verdict::note:
      return "note";
    case Verdict::wrong:
      return "wrong";
    case Verdict::fixed:
      return "fixed";
  }
  return {};
}

Finding check_settings(const std::variant<Settings, SettingsError>& read) {
  if (const auto* error = std::get_if<SettingsError>(&read)) return {"settings", Verdict::wrong, error->text};
  const std::vector<std::string>& files = std::get<Settings>(read).files;
  if (files.empty()) return {"settings", Verdict::good, "no settings file; everything has its default"};
  std::string text;
  for (const std::string& file : files) text += (text.empty() ? "" : ", ") + file;
  return {"settings", Verdict::good, text};
}

std::vector<Finding> check_agents(const task::TaskSettings& settings, const process::Environment& environment,
                                  const std::string& root) {
  std::vector<Finding> findings{default_agent(settings, environment)};
  const task::Agents agents(settings, environment, [&root] { return root; });
  for (const auto& [name, said] : settings.agents) {  // what is said of a built-in one may leave its command as it is
    const task::Agent* const agent = agents.find(name);
    if (agent != nullptr) findings.push_back(check_agent(name, *agent, environment, root));
  }
  return findings;
}

std::vector<Finding> check_servers(const std::vector<bridge::Definition>& servers,
                                   const process::Environment& environment) {
  std::vector<Finding> findings;
  for (const bridge::Definition& server : servers) {
    const std::string subject = "language server " + server.name;
    process::Environment own = environment;
    for (const auto& [name, text] : server.env) own[name] = text;
    const std::string program = server.command.empty() ? server.name : server.command.front();
    if (is_found(program, own)) {
      findings.push_back({subject, Verdict::good, program});
    } else {
      findings.push_back({subject, Verdict::wrong, program + " is not found: install it, or change its command"});
    }
  }
  return findings;
}

std::vector<Finding> check_place(const Project& project, StatePlace place) {
  if (place == StatePlace::user) return check_place_of_user();
  const int root = project.directory.get();
  Place above = look_into(root, ".aiwg", ".aiwg", 0);
  if (above.wrong) return {*above.wrong};
  if (!above.folder) return findings_of({check_writable(root, project.root)});
  Place state = look_into(above.folder.get(), "daemon", state_path, O_NOFOLLOW);
  if (state.wrong) return {*state.wrong};
  if (!state.folder) return findings_of({check_writable(above.folder.get(), ".aiwg")});
  struct stat status {};
  if (fstat(state.folder.get(), &status) == 0 && status.st_uid != geteuid()) {
    return {wrong_place(std::string(state_path) + " belongs to another user: remove it, or use another --project")};
  }
  const int folder = state.folder.get();
  return findings_of({check_writable(folder, state_path),
                      check_entry(folder, socket_name, S_IFSOCK, "no socket, and a daemon listens there"),
                      check_entry(folder, lock_name, S_IFREG, "no plain file, and it is the daemon's lock"),
                      check_entry(folder, log_name, S_IFREG, "no plain file, and it is the daemon's log")});
}

std::optional<Finding> check_unfinished(const StateFolder& folder) {
  const std::int64_t unfinished = task::count_unfinished(folder.descriptor());
  if (unfinished == 0) return std::nullopt;
  return wrong_place(task::unfinished_text(unfinished));
}

Finding check_store(const StateFolder& folder) {
  switch (task::find_store(folder.descriptor())) {
    case task::StoreTrace::none:
      return {"store", Verdict::good, "there is none yet"};
    case task::StoreTrace::remains:
      return {"store", Verdict::wrong,
              "tasks.db is gone, but what goes with it is not: put it back, or move .aiwg/daemon/tasks away"};
    case task::StoreTrace::file:
      break;
  }
  const std::optional<std::string> damage = task::examine_store(folder.descriptor());
  if (damage) return {"store", Verdict::wrong, *damage};
  return {"store", Verdict::good, "tasks.db is whole"};
}

std::vector<Finding> check_leftovers(const StateFolder& folder, bool fix) {
  std::vector<std::string> names = dead_keepers(folder);
  if (has_file(folder, socket_name, S_IFSOCK)) names.emplace_back(socket_name);
  if (has_file(folder, pid_name, S_IFREG)) names.emplace_back(pid_name);
  std::vector<Finding> findings;
  for (const std::string& name : names) {
    if (fix) folder.remove(name);
    findings.push_back({"leftovers", fix ? Verdict::fixed : Verdict::wrong,
                        folder.shown() + '/' + name + " of a daemon that is dead" +
                            (fix ? " was removed" : ": --fix or the next start removes it")});
  }
  if (findings.empty()) findings.push_back({"leftovers", Verdict::good, "none"});
  return findings;
}

}  // namespace duet::app
