#include "app/settings/settings_cluster.h"

#include <sys/stat.h>

#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"
#include "app/settings/settings.h"
#include "app/settings/trusted_files.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

std::variant<Settings, SettingsError> parse(const Texts& texts, const std::optional<std::string>& store = {}) {
  std::vector<SettingsText> sources;
  for (const std::string& text : texts) sources.push_back({"file" + std::to_string(sources.size() + 1), text});
  return parse_settings(sources, store);
}

task::ClusterSettings read(const Texts& texts, const std::optional<std::string>& store = {}) {
  auto parsed = parse(texts, store);
  const auto* const error = std::get_if<SettingsError>(&parsed);
  EXPECT_EQ(error, nullptr) << error->text;
  return error == nullptr ? std::get<Settings>(parsed).cluster : task::ClusterSettings();
}

std::string refused(const Texts& texts, const std::optional<std::string>& store = {}) {
  const auto parsed = parse(texts, store);
  const auto* const error = std::get_if<SettingsError>(&parsed);
  return error == nullptr ? "accepted" : error->text;
}

std::string with_cluster(const std::string& line) {
  return "store = 'postgresql://db/work'\n[cluster]\nproject = 'site'\n" + line;
}

constexpr const char* everything = R"(
store = "postgresql://duet@db1,db2/work"
[cluster]
project = "site"
schema = "queue_2"
name = "build-3"
labels = ["gpu", "os=debian"]
accept = ["claude", "shell"]
run = false
on_lost = "retry"
lease = "2m"
lost_after = "1h"
output = "8M"
insecure = true
)";

TEST(ClusterSettings, ThereIsNoStoreUnlessSomebodySaysSo) {
  EXPECT_EQ(read({}).store, std::nullopt);
  EXPECT_EQ(read({"[cluster]\nproject = 'site'"}).store, std::nullopt) << "that alone makes no cluster";
}

TEST(ClusterSettings, EveryNameIsRead) {
  const task::ClusterSettings cluster = read({everything});
  EXPECT_EQ(cluster.store, "postgresql://duet@db1,db2/work");
  EXPECT_EQ(cluster.project, "site");
  EXPECT_EQ(cluster.schema, "queue_2");
  EXPECT_EQ(cluster.name, "build-3");
  EXPECT_EQ(cluster.labels, (Texts{"gpu", "os=debian"}));
  EXPECT_EQ(cluster.accept, (Texts{"claude", "shell"}));
  EXPECT_FALSE(cluster.run);
  EXPECT_EQ(cluster.on_lost, task::OnLost::retry);
  EXPECT_EQ(cluster.lease, 2min);
  EXPECT_EQ(cluster.lost_after, 1h);
  EXPECT_EQ(cluster.output, 8U << 20U);
  EXPECT_TRUE(cluster.insecure);
}

TEST(ClusterSettings, HaveDefaults) {
  const task::ClusterSettings cluster = read({with_cluster("")});
  EXPECT_EQ(cluster.schema, "duet");
  EXPECT_FALSE(cluster.name.empty()) << "the host's";
  EXPECT_TRUE(cluster.labels.empty() && !cluster.accept && cluster.run && !cluster.insecure);
  EXPECT_EQ(cluster.on_lost, task::OnLost::fail);
  EXPECT_EQ(cluster.lease, 90s);
  EXPECT_EQ(cluster.lost_after, 10min);
  EXPECT_EQ(cluster.output, 4U << 20U);
  EXPECT_EQ(read({with_cluster("lease = '1h'")}).lost_after, 1h) << "never below the lease";
}

TEST(ClusterSettings, SeveralFilesAndTheEnvironmentMakeAWhole) {
  EXPECT_EQ(read({"store = 'postgresql://a'", "[cluster]\nproject = 'site'"}).store, "postgresql://a");
  EXPECT_EQ(read({"[cluster]\nproject = 'site'"}, "postgresql://b").store, "postgresql://b");
  EXPECT_EQ(read({with_cluster("")}, "postgresql://b").store, "postgresql://b") << "the environment goes over files";
  const task::ClusterSettings both = read({with_cluster("lease = '2m'"), "[cluster]\nrun = false"});
  EXPECT_EQ(both.lease, 2min);
  EXPECT_FALSE(both.run);
}

TEST(ClusterSettings, WhatIsNoUrlOfPostgresqlIsRefusedUnseen) {
  for (const char* store :
       {"'sqlite'", "'mysql://u:hidden@h/d'", "'postgresql://u:hid/den@h'", "''", "7", "['hidden']"}) {
    const std::string text = refused({"store = " + std::string(store)});
    EXPECT_TRUE(text.starts_with("file1:1:9: store must be a PostgreSQL URL such as postgresql://")) << text;
    EXPECT_EQ(text.find("hid"), std::string::npos) << text;
  }
  const std::string environment = refused({}, "hidden");
  EXPECT_TRUE(environment.starts_with("DUET_RPC_STORE must be a PostgreSQL URL")) << environment;
  EXPECT_EQ(environment.find("hidden"), std::string::npos) << environment;
}

TEST(ClusterSettings, AFaultOfTheFileShowsNoPasswordEither) {
  for (const char* text : {"store = postgresql://u:hidden@h", "store = \"postgresql://u:a\"hidden@h\"",
                           "store = \"postgresql://u:\\hidden@h\"", "store = 'postgresql://u:hidden@h"}) {
    EXPECT_EQ(refused({text}).find("hid"), std::string::npos) << refused({text});
    EXPECT_NE(refused({text}).find("not shown"), std::string::npos) << refused({text});
  }
  EXPECT_NE(refused({"a = \n"}).find("this is not TOML: "), std::string::npos) << "others are told as ever";
}

TEST(ClusterSettings, AreHiddenInWords) {
  const auto parsed = parse({"store = 'postgresql://u:hidden@h/d'\n[cluster]\nproject = 'site'"});
  const auto& words = std::get<Settings>(parsed).words;
  EXPECT_EQ(words.at("store"), "\"postgresql://u:***@h/d\"");
  EXPECT_EQ(std::get<Settings>(parsed).cluster.store, "postgresql://u:hidden@h/d");
}

TEST(ClusterSettings, AProjectIsRequiredWithAStore) {
  EXPECT_EQ(refused({"\nstore = 'postgresql://h'"}),
            "file1:2:9: store needs cluster.project, the project that the queue is for: project = \"site\"");
  EXPECT_EQ(refused({}, "postgresql://h"),
            "store needs cluster.project, the project that the queue is for: project = \"site\"");
}

TEST(ClusterSettings, HaveBounds) {
  const auto fault = [](const std::string& line) { return refused({with_cluster(line)}); };
  const std::string long_text(65, 'x');
  for (const char* line : {"lease = '30s'", "lease = '1h'", "lost_after = '90s'", "lost_after = '7d'", "output = 0",
                           "output = '64M'", "schema = '_a9'", "labels = []", "accept = []"})
    EXPECT_EQ(fault(line), "accepted") << line;
  EXPECT_EQ(fault("lease = '29s'"), "file1:4:9: cluster.lease is '29s': it must be from 30s to 1h");
  EXPECT_NE(fault("lease = '61m'"), "accepted");
  EXPECT_EQ(fault("lost_after = '80s'"),
            "file1:4:14: cluster.lost_after is below cluster.lease: it must be from the lease to 7d");
  EXPECT_NE(fault("lost_after = '8d'"), "accepted");
  EXPECT_EQ(fault("output = '65M'"), "file1:4:10: cluster.output is '65M': it must be at most 64M");
  for (const char* schema : {"Duet", "9a", "a-b", "pg_duet", "a.b", "ä"})
    EXPECT_NE(fault("schema = '" + std::string(schema) + "'"), "accepted") << schema;
  EXPECT_NE(fault("schema = '" + std::string(41, 'a') + "'"), "accepted");
  EXPECT_NE(fault("name = '" + long_text + "'"), "accepted");
  EXPECT_NE(fault("labels = ['" + long_text + "']"), "accepted");
  EXPECT_NE(fault("labels = [\"a\\u001fb\"]"), "accepted");
  EXPECT_NE(fault("labels = ['']"), "accepted");
  EXPECT_NE(fault("labels = ['name=other']"), "accepted") << "it would take another worker's tasks";
  EXPECT_NE(fault("labels = ['limit=memory']"), "accepted") << "it would take tasks whose limits it cannot keep";
  EXPECT_NE(fault("on_lost = 'ignore'"), "accepted");
  EXPECT_NE(fault("leases = 1"), "accepted");
  std::string labels = "labels = ['0'";
  for (int i = 1; i < 64; ++i) labels += ", '" + std::to_string(i) + "'";
  EXPECT_EQ(fault(labels + "]"), "accepted");
  EXPECT_NE(fault(labels + ", '64']"), "accepted");
}

TEST(ClusterSettings, WhatBelongsToTheQueueIsRefusedWithTheCure) {
  for (const char* name : {"queue_capacity", "keep_days", "keep_tasks", "keep_output"}) {
    const std::string line = std::string(name) + " = 5\n";
    EXPECT_EQ(refused({line}), "accepted") << "without a store it is this daemon's";
    EXPECT_EQ(refused({line, with_cluster("")}), "file1:1:" + std::to_string(line.size() - 1) + ": " + name +
                                                     " belongs to the queue that `store` names: take it out, and say "
                                                     "'duet-rpc cluster set " +
                                                     name + "=VALUE'");
  }
}

struct ClusterFiles : testing::Test {
  std::string fault() {
    const auto read = read_settings(place.project(), places);
    const auto* const error = std::get_if<SettingsError>(&read);
    return error == nullptr ? "" : error->text;
  }
  Settings settings() { return std::get<Settings>(read_settings(place.project(), places)); }

  TemporaryProject place;
  TemporaryProject home;
  std::string own = place.path() / ".duet-rpc.toml";
  SettingsPlaces places{.user = (home.path() / "config.toml").string(), .user_state = (home.path() / "state").string()};
  std::string secret = "store = 'postgresql://u:hidden@h/d'\n[cluster]\nproject = 'site'\n";
};

TEST_F(ClusterFiles, APasswordIsRefusedWhereOthersMayRead) {
  TemporaryProject::write(places.user, secret);
  for (const mode_t mode : {0640U, 0604U, 0644U}) {
    ASSERT_EQ(chmod(places.user.c_str(), mode), 0);
    EXPECT_NE(fault().find("config.toml:1:9: store has a password, and others may read this file"), std::string::npos)
        << fault();
    EXPECT_EQ(fault().find("hidden"), std::string::npos);
  }
  ASSERT_EQ(chmod(places.user.c_str(), 0600), 0);
  EXPECT_EQ(fault(), "");
  TemporaryProject::write(places.user, with_cluster(""));
  ASSERT_EQ(chmod(places.user.c_str(), 0644), 0);
  EXPECT_EQ(fault(), "") << "without a password anybody may read it";
}

TEST_F(ClusterFiles, AProjectsFileNamesAStoreOnlyIfItIsTrusted) {
  TemporaryProject::write(own, with_cluster(""));
  EXPECT_EQ(settings().cluster.store, std::nullopt);
  EXPECT_NE(settings().note.find("its cluster and store do not count"), std::string::npos) << settings().note;
  TrustedFiles(places.user_state).trust(own, with_cluster(""));
  EXPECT_EQ(settings().cluster.store, "postgresql://db/work");
  EXPECT_EQ(settings().note, "");
}

TEST_F(ClusterFiles, TheUsersOwnPartIsReadableAlone) {
  TemporaryProject::write(places.user, "store = 'postgresql://h'\n");
  EXPECT_TRUE(std::holds_alternative<TlsSettings>(tls_settings(places))) << "the project's file has the rest";
  places.store = "postgresql://other";
  TemporaryProject::write(places.user, "[cluster]\nproject = 'site'\n");
  EXPECT_EQ(settings().cluster.store, "postgresql://other");
}

}  // namespace
}  // namespace duet::app
