#include "app/certificates/tls_folder.h"

#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "app/project/failure.h"
#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;

/// A place for the folder, which is not there at first.
class TlsFolderTest : public testing::Test {
 protected:
  std::string text(const std::string& name) const { return TemporaryProject::read(folder_ / name); }
  bool is_there(const std::string& name) const { return fs::exists(folder_ / name); }
  unsigned mode(const fs::path& path) const { return static_cast<unsigned>(fs::status(path).permissions()); }

  TemporaryProject place_;
  fs::path folder_ = place_.path() / "config" / "tls";
};

TEST_F(TlsFolderTest, IsMadeForItsOwnerAlone) {
  TlsFolderHold hold(folder_);
  hold.replace_together({{"ca.key", "secret"}, {"ca.pem", "known"}});
  EXPECT_EQ(mode(folder_), 0700U);
  EXPECT_EQ(mode(folder_ / "ca.key"), 0600U);
  EXPECT_EQ(text("ca.key"), "secret");
  EXPECT_EQ(text("ca.pem"), "known");
  EXPECT_FALSE(is_there("begun"));
  EXPECT_FALSE(is_there("unfinished"));
  EXPECT_TRUE(hold.finished().empty());
}

TEST_F(TlsFolderTest, FinishesWhatAKilledOneHadWritten) {
  TlsFolderHold(folder_).replace_together({{"ca.key", "old"}, {"server.pem", "old"}, {"revoked", "stays"}});
  fs::create_directory(folder_ / "unfinished");
  TemporaryProject::write(folder_ / "unfinished/ca.key", "new");
  TemporaryProject::write(folder_ / "unfinished/server.pem", "new");
  EXPECT_THROW(refuse_unfinished(folder_), Failure);
  EXPECT_NE(unfinished_note(folder_).find("'duet-rpc cert init' finishes it"), std::string::npos);
  const TlsFolderHold hold(folder_);
  EXPECT_EQ(hold.finished(), (std::vector<std::string>{"server.pem", "ca.key"}));
  EXPECT_EQ(text("ca.key"), "new");
  EXPECT_EQ(text("server.pem"), "new");
  EXPECT_EQ(text("revoked"), "stays");
  EXPECT_FALSE(is_there("unfinished"));
  EXPECT_NO_THROW(refuse_unfinished(folder_));
  EXPECT_EQ(unfinished_note(folder_), "");
}

TEST_F(TlsFolderTest, ForgetsWhatAKilledOneHadOnlyBegun) {
  TlsFolderHold(folder_).replace_together({{"ca.key", "old"}});
  fs::create_directory(folder_ / "begun");
  TemporaryProject::write(folder_ / "begun/ca.key", "half of a n");
  const TlsFolderHold hold(folder_);
  EXPECT_TRUE(hold.finished().empty());
  EXPECT_EQ(text("ca.key"), "old");
  EXPECT_FALSE(is_there("begun"));
}

TEST_F(TlsFolderTest, ChangesNothingIfNotAllCanBeWritten) {
  TlsFolderHold hold(folder_);
  hold.replace_together({{"ca.key", "old"}, {"ca.pem", "old"}});
  EXPECT_THROW(hold.replace_together({{"ca.key", "new"}, {"no/such/folder", "new"}}), Failure);
  EXPECT_EQ(text("ca.key"), "old");
  EXPECT_EQ(text("ca.pem"), "old");
  EXPECT_FALSE(is_there("begun"));
  EXPECT_FALSE(is_there("unfinished"));
}

TEST_F(TlsFolderTest, FilesOfOthersAndKeysThatOthersReadAreRefused) {
  EXPECT_FALSE(read_tls_file(folder_, "ca.key"));
  TlsFolderHold(folder_).replace_together({{"ca.key", "secret"}, {"ca.pem", "known"}});
  EXPECT_EQ(read_tls_file(folder_, "ca.key"), "secret");
  fs::permissions(folder_ / "ca.key", fs::perms(0640));
  fs::permissions(folder_ / "ca.pem", fs::perms(0644));
  EXPECT_THROW(read_tls_file(folder_, "ca.key"), Failure);
  EXPECT_EQ(read_tls_file(folder_, "ca.pem"), "known");
  fs::permissions(folder_ / "ca.pem", fs::perms(0666));
  EXPECT_THROW(read_tls_file(folder_, "ca.pem"), Failure);
}

}  // namespace
}  // namespace duet::app
