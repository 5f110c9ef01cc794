#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/project/user_state.h"
#include "app/settings/harmless.h"
#include "app/settings/settings.h"
#include "app/settings/settings_file.h"
#include "app/settings/trusted_files.h"
#include "app/view/display_text.h"
#include "app/view/table.h"
#include "app/view/text_style.h"
#include "app/words/sha256.h"
#include "duet/rpc/value.h"
#include "task/origin.h"

namespace duet::app {
namespace {

using boost::json::object;

/// What the user is to decide about. Its text was read once: it is what is shown, and what is trusted.
struct Review {
  std::string path;
  std::string text;
  SettingsWords words;                  // that need trust
  std::optional<SettingsWords> before;  // those that were trusted, if another content was
};

// DUET_TASK_ID is for tasks whose keeper is gone.
void refuse_tasks() {
  if (std::getenv("DUET_TASK_ID") == nullptr && task::origin_of(getpid()) != task::Origin::task) return;
  throw Failure("a task may not trust settings, that is for people to decide: run it outside of tasks");
}

SettingsWords harmful_words(std::string_view text) {
  auto parsed = parse_toml(text);
  auto* const top = std::get_if<Setting>(&parsed);
  if (top == nullptr) return {};
  const SettingsWords all = words_of(*top);
  remove_harmful(*top);
  const SettingsWords harmless = words_of(*top);
  SettingsWords out;
  std::ranges::set_difference(all, harmless, std::inserter(out, out.end()));
  return out;
}

std::string text_of(const Project& project, const std::string& path, const TrustedFiles& files) {
  auto read = read_settings_file(project.directory.get(), ".duet-rpc.toml");
  if (const auto* refused = std::get_if<RefusedFile>(&read)) throw Failure(path + " is not used: " + refused->why);
  auto& text = std::get<std::optional<std::string>>(read);
  if (text) return std::move(*text);
  const auto before = files.trusted(path);
  std::string cure = before && *before ? "; 'duet-rpc trust --revoke' forgets that you had trusted it" : "";
  if (!before) cure = "; whether you had trusted one is not known: " + before.error();
  throw Failure("there is no " + path + ", so there is nothing to trust" + cure);
}

Review review_of(const Project& project, const TrustedFiles& files) {
  Review review;
  review.path = settings_path_of(project);
  review.text = text_of(project, review.path, files);
  const auto checked = check_project_settings({review.path, review.text, true}, settings_places());
  if (const auto* error = std::get_if<SettingsError>(&checked)) throw Failure(error->text);
  review.words = harmful_words(review.text);
  const auto trusted = files.trusted(review.path);
  if (!trusted) throw Failure(trusted.error());
  if (!*trusted) return review;
  const std::optional<std::string> content = files.content(**trusted);
  if (content) review.before = harmful_words(*content);
  return review;
}

SettingsWords less(const SettingsWords& from, const SettingsWords& what) {
  SettingsWords out;
  std::ranges::set_difference(from, what, std::inserter(out, out.end()));
  return out;
}

std::string lines_of(const SettingsWords& words, const std::string& mark) {
  std::string out;
  for (const auto& [name, value] : words) out.append(mark).append(name).append(" = ").append(value).append("\n");
  return out;
}

std::string page_of(const Review& review, const TextStyle& style) {
  if (!review.before) {
    return one_line(review.path) + ", if you trust it, has the daemon use:\n\n" + lines_of(review.words, "  ") + '\n';
  }
  const std::string gone = lines_of(less(*review.before, review.words), style.fault("-") + ' ');
  const std::string come = lines_of(less(review.words, *review.before), style.good("+") + ' ');
  const std::string nothing = "  nothing that needs trust: comments, blanks or limits only\n";
  return one_line(review.path) + " was changed after you trusted it. What differs:\n\n" +
         (gone.empty() && come.empty() ? nothing : gone + come) + '\n';
}

object as_object(const SettingsWords& words) {
  object out;
  for (const auto& [name, value] : words) out[name] = value;
  return out;
}

object json_of(const Review& review, bool trusted) {
  object out{{"path", one_line(review.path)},
             {"sha256", sha256(review.text)},
             {"trusted", trusted},
             {"needed", !review.words.empty()},
             {"settings", as_object(review.words)}};
  if (!review.before) return out;
  out["removed"] = as_object(less(*review.before, review.words));
  out["added"] = as_object(less(review.words, *review.before));
  return out;
}

bool is_yes(std::string answer) {
  std::ranges::transform(answer, answer.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return answer == "y" || answer == "yes";
}

// What was shown is what is asked about.
void ask(const CommandLine& line) {
  if (line.flag("yes")) return;
  if (line.flag("json") || isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) {
    throw Failure("this content is not trusted yet, and there is nobody to ask: look at it, then say '" +
                  std::string(line.program) + " trust --yes'");
  }
  print_text("Trust it? [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  if (!is_yes(answer)) throw Failure("nothing was changed: it is not trusted");
}

// The daemon still says that the file is to be trusted: saying so once more would not help.
std::string why_in_vain(const std::string& note) {
  if (note.find("'duet-rpc trust'") == note.npos) return note;
  return "the daemon does not know of it: its XDG_STATE_HOME or HOME is another one than that of this command, or the "
         "file was changed meanwhile; 'duet-rpc daemon restart' gives the daemon those of this command";
}

// Has a daemon that runs take it over; what it says then, for people.
std::string have_it_read(const CommandLine& line) {
  DaemonClient daemon(line);
  daemon.leave_settings_to_me();
  const bool runs = line.text("socket") || (daemon.folder() != nullptr && DaemonLock::is_held(*daemon.folder()));
  if (!runs) return "";
  try {
    const boost::json::value read = daemon.call("daemon.reload");
    const auto* const note = read.as_object().if_contains("note");
    if (note != nullptr && !line.flag("revoke")) return "; but " + why_in_vain(std::string(note->as_string()));
    return line.flag("revoke") ? "; the daemon has dropped what needed it" : "; the daemon goes by it now";
  } catch (const Failure& failure) {
    return std::string("; the daemon has not taken it over: ") + failure.what();
  }
}

int tell_result(const CommandLine& line, const object& result, const std::string& text) {
  const std::string effect = have_it_read(line);
  return print_text(line.flag("json") ? rpc::to_text(result) + '\n' : text + effect + '\n');
}

int trust(const CommandLine& line, const Project& project, const TrustedFiles& files) {
  const Review review = review_of(project, files);
  const bool json = line.flag("json");
  const auto trusted = files.trusted(review.path);
  const bool known = trusted && *trusted == sha256(review.text);
  const std::string path = one_line(review.path);
  if (known) return tell_result(line, json_of(review, true), path + " is trusted already");
  if (review.words.empty() && !review.before) {
    return tell_result(line, json_of(review, false), path + " has nothing in it that needs to be trusted");
  }
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  const bool shows = !json || !line.flag("yes");
  if (shows) print_text(json ? rpc::to_text(json_of(review, false)) + '\n' : page_of(review, style));
  ask(line);
  files.trust(review.path, review.text);
  return tell_result(line, json_of(review, true), path + " is trusted");
}

int revoke(const CommandLine& line, const Project& project, const TrustedFiles& files) {
  const std::string path = settings_path_of(project);
  const bool was = files.revoke(path);
  return tell_result(line, {{"path", one_line(path)}, {"revoked", was}},
                     one_line(path) + (was ? " is no longer trusted" : " was not trusted"));
}

std::string present_state(const TrustedFiles::Entry& entry) {
  const auto read = read_settings_file(AT_FDCWD, entry.path);
  const auto* const text = std::get_if<std::optional<std::string>>(&read);
  if (text == nullptr) return "refused";
  if (!*text) return "gone";
  return sha256(**text) == entry.sha256 ? "trusted" : "changed";
}

int list(const CommandLine& line, const TrustedFiles& files) {
  const auto entries = files.list();
  if (!entries) throw Failure(entries.error());
  boost::json::array all;
  Table table({"STATE", "FILE"});
  for (const TrustedFiles::Entry& entry : *entries) {
    const std::string state = present_state(entry);
    all.push_back(object{{"path", one_line(entry.path)}, {"sha256", entry.sha256}, {"state", state}});
    table.add({{state, state == "trusted" ? Table::Paint::good : Table::Paint::faint}, {one_line(entry.path)}});
  }
  if (line.flag("json")) return print_text(rpc::to_text(object{{"trusted", std::move(all)}}) + '\n');
  if (entries->empty()) return print_text("nothing is trusted\n");
  return print_text(table.text(TextStyle(colour_wanted(STDOUT_FILENO, line.no_color)), std::nullopt));
}

}  // namespace

int run_trust(const CommandLine& line) {
  const TrustedFiles files(user_state_path());
  if (line.flag("list")) return list(line, files);
  refuse_tasks();
  const Project project = find_project(line.text("project"));
  return line.flag("revoke") ? revoke(line, project, files) : trust(line, project, files);
}

}  // namespace duet::app
