#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "app/mcp/code_answers.h"
#include "app/mcp/code_questions.h"
#include "app/mcp/source_cache.h"
#include "app/mcp/tools.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;
using std::chrono::seconds;

constexpr std::size_t most_diagnosed = 20;
constexpr int most_checks = 3;

// A file, as it was before its server was asked, and what was answered.
struct CheckedFile {
  Scope::Target target;
  std::shared_ptr<SourceCache::Source> seen = {};
  object answer = {};
};

// Several files that are asked about together: an answer is fresh if its file is still the same when all have come.
struct Checkup {
  CallPointer call;
  Arguments arguments;
  PagePlace from;
  std::string home;
  base::TimePoint until;
  std::vector<CheckedFile> files = {};
  int round = 0;
  std::size_t left = 0;  // roots whose daemon has not answered
};
using CheckupPointer = std::shared_ptr<Checkup>;

void look_again_at(const CheckupPointer& all, const std::vector<std::size_t>& which);

void finish_checkup(const CheckupPointer& all) {
  SourceCache& cache = all->call->services().sources;
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < all->files.size(); ++i) {
    if (!cache.is_unchanged(all->files[i].seen)) changed.push_back(i);
  }
  if (!changed.empty() && all->round < most_checks) return look_again_at(all, changed);
  const auto is_there = [&](const CheckedFile& file) { return is_still_there(all->call, file.target.path); };
  if (!std::ranges::all_of(all->files, is_there)) return;
  std::vector<object> answers;
  for (CheckedFile& file : all->files) answers.push_back(std::move(file.answer));
  for (const std::size_t i : changed) {
    answers[i]["fresh"] = false;
    answers[i]["reason"] = "changed";
  }
  // Files of one other tree are told from its root, so that a wrong tree is seen.
  const std::string& first = all->files.front().target.root;
  const bool is_one_tree =
      std::ranges::all_of(all->files, [&](const CheckedFile& file) { return file.target.root == first; });
  const std::string severity = all->arguments.text("severity").value_or("warning");
  finish_page(all->call, all->arguments, all->from,
              diagnostics_page(answers, severity, is_one_tree ? first : all->home));
}

Desk::Part question_about(Checkup& all, std::size_t file, base::Duration wait) {
  CheckedFile& checked = all.files[file];
  checked.seen = all.call->services().sources.find(checked.target.path);
  object params{{"file", checked.target.path}, {"waitSeconds", std::chrono::duration<double>(wait).count()}};
  add_path(params);
  return {"lsp.diagnostics", std::move(params)};
}

// The servers work on all files since all were asked about; so what is left of the time is enough for each in turn.
void wait_for_rest(const CheckupPointer& all, const std::string& root, std::vector<std::size_t> rest) {
  const base::Duration left = all->until - all->call->services().loop.now();
  const bool is_asked = !rest.empty() && !all->files[rest.back()].answer.empty();
  if (rest.empty() || (is_asked && left <= base::Duration(0))) {
    if (--all->left == 0) finish_checkup(all);
    return;
  }
  const std::size_t file = rest.back();
  rest.pop_back();
  all->call->ask(root, {question_about(*all, file, std::max(left, base::Duration(0)))}, about_code(),
                 [=](const Call::Parts& answers) {
                   all->files[file].answer = answers[0]->as_object();
                   wait_for_rest(all, root, rest);
                 });
}

// A daemon answers one connection in order: several files are asked about without a wait first.
void look_again_at(const CheckupPointer& all, const std::vector<std::size_t>& which) {
  ++all->round;
  std::map<std::string, std::vector<std::size_t>> roots;
  for (const std::size_t i : which) roots[all->files[i].target.root].push_back(i);
  all->left = roots.size();
  for (const auto& [root, files] : roots) {
    if (files.size() == 1) {
      wait_for_rest(all, root, files);
      continue;
    }
    std::vector<Desk::Part> parts;
    for (const std::size_t i : files) parts.push_back(question_about(*all, i, base::Duration(0)));
    all->call->ask(root, std::move(parts), about_code(), [all, root = root, files = files](const Call::Parts& answers) {
      std::vector<std::size_t> rest;
      for (std::size_t i = 0; i < files.size(); ++i) {
        all->files[files[i]].answer = answers[i]->as_object();
        if (!answers[i]->at("fresh").as_bool()) rest.push_back(files[i]);
      }
      wait_for_rest(all, root, std::move(rest));
    });
  }
}

}  // namespace

void run_code_diagnostics(const CallPointer& call, const Arguments& arguments) {
  const std::string home = call->home();
  if (home.empty()) return;
  const std::optional<PagePlace> from = page_place(call, arguments);
  if (!from) return;
  const std::vector<std::string> names = arguments.texts("files");
  if (names.empty() || names.size() > most_diagnosed) {
    return call->fail(bad_argument("'files' has " + std::to_string(names.size()) + " paths", "1 to 20 paths"));
  }
  const std::int64_t wait = arguments.number("wait_seconds", 10);
  const auto all =
      std::make_shared<Checkup>(Checkup{call, arguments, *from, home, call->services().loop.now() + seconds(wait)});
  std::vector<std::size_t> which;
  for (const std::string& name : names) {
    NamedPlace place{.file = name};
    const tl::expected<Scope::Target, ToolError> target = locate_place(*call, place);
    if (!target) return call->fail(target.error());
    const auto is_it = [&](const CheckedFile& file) { return file.target.path == target->path; };
    if (std::ranges::any_of(all->files, is_it)) continue;
    which.push_back(all->files.size());
    all->files.push_back({.target = *target});
  }
  call->set_total(wait);
  tell_of_servers(call, all->files.front().target.root);
  look_again_at(all, which);
}

}  // namespace duet::app::mcp
