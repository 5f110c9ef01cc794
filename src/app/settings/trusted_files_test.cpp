#include "app/settings/trusted_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

#include "app/project/failure.h"
#include "app/project/temporary_project_test.h"
#include "app/words/sha256.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;

struct Trusted : testing::Test {
  TemporaryProject place;
  std::string state = (place.path() / "state/duet-rpc").string();
  fs::path file = fs::path(state) / "trusted";
  TrustedFiles files{state};

  std::string sha_of(std::string_view path) const { return files.trusted(path).value().value_or("none"); }
  std::string refusal() const {
    const auto list = files.list();
    return list ? "accepted" : list.error();
  }
};

TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_F(Trusted, AreNoneBeforeAnybodyTrusts) {
  EXPECT_EQ(sha_of("/p/.duet-rpc.toml"), "none");
  EXPECT_EQ(TrustedFiles("").trusted("/p/.duet-rpc.toml").value(), std::nullopt);
  EXPECT_FALSE(files.revoke("/p/.duet-rpc.toml"));
  EXPECT_FALSE(fs::exists(state)) << "asking makes nothing";
}

TEST_F(Trusted, AreKeptPrivatelyWithTheirContent) {
  files.trust("/p/.duet-rpc.toml", "content");
  EXPECT_EQ(sha_of("/p/.duet-rpc.toml"), sha256("content"));
  EXPECT_EQ(sha_of("/q/.duet-rpc.toml"), "none");
  EXPECT_EQ(files.content(sha256("content")), "content");
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(stat(state.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(Trusted, AreOneContentForEachPath) {
  files.trust("/p/.duet-rpc.toml", "one");
  files.trust("/p/.duet-rpc.toml", "two");
  EXPECT_EQ(sha_of("/p/.duet-rpc.toml"), sha256("two"));
  EXPECT_EQ(files.content(sha256("one")), std::nullopt);
  EXPECT_TRUE(files.revoke("/p/.duet-rpc.toml"));
  EXPECT_EQ(sha_of("/p/.duet-rpc.toml"), "none");
  EXPECT_EQ(files.content(sha256("two")), std::nullopt);
}

TEST_F(Trusted, MayHaveAnyPath) {
  const std::string strange = "/a\nb\\c\rd/\xff/.duet-rpc.toml";
  files.trust(strange, "x");
  files.trust("/a", "y");
  EXPECT_EQ(sha_of(strange), sha256("x"));
  EXPECT_EQ(sha_of("/a"), sha256("y"));
  EXPECT_EQ(files.list()->size(), 2U);
  files.revoke(strange);
  files.revoke("/a");
}

TEST_F(Trusted, ThatOthersCouldHaveWrittenAreNone) {
  files.trust("/p/.duet-rpc.toml", "content");
  ASSERT_EQ(chmod(file.c_str(), 0620), 0);
  EXPECT_NE(refusal().find("others may write to it"), std::string::npos) << refusal();
  EXPECT_THROW(files.trust("/q/.duet-rpc.toml", "x"), Failure);
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  ASSERT_EQ(chmod(state.c_str(), 0770), 0);
  EXPECT_THROW(files.trust("/q/.duet-rpc.toml", "x"), Failure);
  ASSERT_EQ(chmod(state.c_str(), 0700), 0);
  EXPECT_EQ(sha_of("/p/.duet-rpc.toml"), sha256("content"));
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(file.c_str(), 4242, 4242), 0);
  EXPECT_NE(refusal().find("belongs to another user"), std::string::npos) << refusal();
  fs::remove(file);
}

TEST_F(Trusted, ForgetProjectsThatAreGoneBeforeThereAreTooMany) {
  const std::string alive = (place.path() / ".duet-rpc.toml").string();  // the file is not there, its folder is
  files.trust(alive, "content");
  std::string lines = TemporaryProject::read(file);
  for (int i = 0; lines.size() <= (1U << 20U); ++i) {
    lines += sha256("content") + "  /nowhere/" + std::to_string(i) + "/.duet-rpc.toml\n";
  }
  TemporaryProject::write(file, lines);
  EXPECT_EQ(sha_of(alive), sha256("content")) << "though the list has more than a megabyte";
  files.trust("/p/.duet-rpc.toml", "another");
  EXPECT_EQ(files.list()->size(), 2U);
  EXPECT_EQ(sha_of(alive), sha256("content"));
  EXPECT_EQ(sha_of("/p/.duet-rpc.toml"), sha256("another"));
}

TEST_F(Trusted, AContentThatWasChangedBesideIsNotShown) {
  files.trust("/p/.duet-rpc.toml", "content");
  TemporaryProject::write(fs::path(state) / "trusted.d" / sha256("content"), "another");
  EXPECT_EQ(files.content(sha256("content")), std::nullopt);
}

TEST_F(Trusted, AreNotLostWhenSeveralTrustAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (int j = 0; j < 5; ++j) files.trust("/" + std::to_string(i) + "/" + std::to_string(j), std::to_string(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 5; ++j) EXPECT_NE(sha_of("/" + std::to_string(i) + "/" + std::to_string(j)), "none");
  }
}

}  // namespace
}  // namespace duet::app
