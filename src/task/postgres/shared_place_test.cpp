#include "task/postgres/shared_place.h"

#include <gtest/gtest.h>

namespace duet::task::postgres {
namespace {

std::string folder_of(const std::string& cwd, const std::string& project = "/srv/p") {
  Submission submission{.prompt = "x", .cwd = cwd};
  const auto portable = make_portable(submission, project);
  return portable ? submission.cwd : "refused";
}

TEST(SharedPlace, AFolderInsideTheProjectIsToldFromItsRoot) {
  EXPECT_EQ(folder_of("/srv/p/src/a"), "src/a");
  EXPECT_EQ(folder_of("/srv/p/src/../b/"), "b");
  EXPECT_EQ(folder_of("src"), "src");
  EXPECT_EQ(folder_of("/srv/p"), "");
  EXPECT_EQ(folder_of("/srv/p/."), "");
  EXPECT_EQ(folder_of(""), "");
  EXPECT_EQ(folder_of("/etc", "/"), "etc");
}

TEST(SharedPlace, AFolderElsewhereIsRefused) {
  for (const char* cwd : {"/srv", "/srv/pp", "/srv/p/..", "/", "../q", "src/../../q"}) {
    EXPECT_EQ(folder_of(cwd), "refused") << cwd;
  }
}

TEST(SharedPlace, OneThatRunsHereKeepsItsFolderAndPath) {
  Submission submission{.prompt = "x", .cwd = "/tmp", .env = {{"PATH", "/bin"}, {"A", "b"}}};
  submission.here = true;
  EXPECT_TRUE(make_portable(submission, "/srv/p"));
  EXPECT_EQ(submission.cwd, "/tmp");
  EXPECT_TRUE(submission.env.contains("PATH"));
  submission.here = false;
  submission.cwd.clear();
  EXPECT_TRUE(make_portable(submission, "/srv/p"));
  EXPECT_FALSE(submission.env.contains("PATH"));
  EXPECT_TRUE(submission.env.contains("A"));
}

TEST(SharedPlace, AWorkerFindsTheFolderBelowItsOwnRoot) {
  EXPECT_EQ(local_folder("/srv/q", "src/a"), "/srv/q/src/a");
  EXPECT_EQ(local_folder("/srv/q", ""), "");
  EXPECT_EQ(local_folder("/srv/q", "/tmp"), "/tmp");
  EXPECT_EQ(local_folder("/", "etc"), "/etc");
}

TEST(SharedPlace, TheEnvironmentGoesAndComesWithItsBytes) {
  Submission submission{.prompt = "x", .env = {{"A", "b"}, {"RAW", "\xFF"}}};
  const std::string text = env_text(submission);
  Submission other{.prompt = "x", .env = {{"C", "d"}}};
  add_env(other, text);
  EXPECT_EQ(other.env.at("A"), "b");
  EXPECT_EQ(other.env.at("RAW"), "\xFF");
  EXPECT_EQ(other.env.at("C"), "d");
  EXPECT_EQ(env_text({.prompt = "x"}), "");
  add_env(other, "nonsense");
}

}  // namespace
}  // namespace duet::task::postgres
