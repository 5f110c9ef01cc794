#include "bridge/documents.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "duet/rpc/value.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::bridge {
namespace {

class DocumentsTest : public testing::Test {
 protected:
  void open_all(Capabilities capabilities = {}) { documents.open_all(capabilities); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder.file(name)) << text;
    return folder.file(name);
  }
  // What was sent since the last time, without `textDocument/`, each with its document's name, version and text.
  std::vector<std::string> news() { return std::exchange(sent, {}); }

  transport::TemporaryFolder folder;
  std::vector<std::string> sent;
  Documents documents{[this](std::string_view method, const std::string& params) {
    const boost::json::value tree = rpc::parse_value(params);
    const boost::json::value& document = tree.at("textDocument");
    std::string line(method.substr(method.find('/') + 1));
    const std::string uri(document.at("uri").as_string());
    line += ' ' + uri.substr(uri.rfind('/') + 1);
    if (const auto* version = document.as_object().if_contains("version")) line += ' ' + rpc::to_text(*version);
    if (const auto* text = document.as_object().if_contains("text")) line += ' ' + rpc::to_text(*text);
    if (const auto* changes = tree.as_object().if_contains("contentChanges")) line += ' ' + rpc::to_text(*changes);
    sent.push_back(line);
  }};
};

using Lines = std::vector<std::string>;

TEST_F(DocumentsTest, OpensADocumentOnceAndSendsOnlyChanges) {
  open_all();
  const std::string path = write("a.c", "one");
  EXPECT_EQ(documents.look(path)->text.str(), "one");
  documents.look(path);
  EXPECT_EQ(news(), Lines{"didOpen a.c 1 \"one\""});
  write("a.c", "two");
  EXPECT_FALSE(documents.is_current(path));
  EXPECT_EQ(documents.look(path)->version, 2);
  EXPECT_TRUE(documents.is_current(path));
  EXPECT_EQ(news(), Lines{"didChange a.c 2 [{\"text\":\"two\"}]"});
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now());
  documents.look(path);
  EXPECT_EQ(news(), Lines{});
}

TEST_F(DocumentsTest, KnowsWhichOneIsMeantBySlashesForBackslashes) {
  open_all();
  const std::string path = write("back\\slash.c", "");
  const std::string other = write("a.c", "");
  documents.look(path);
  documents.look(other);
  EXPECT_EQ(documents.meant_by(folder.file("back/slash.c")), path);
  EXPECT_EQ(documents.meant_by(other), other);
  EXPECT_EQ(documents.meant_by(folder.file("none.c")), folder.file("none.c"));
}

TEST_F(DocumentsTest, SaysThatAChangeOnDiskWasSaved) {
  open_all({.wants_saves = true});
  const std::string path = write("a.c", "one");
  documents.look(path);
  write("a.c", "two");
  documents.look(path);
  EXPECT_EQ(news().back(), "didSave a.c");
}

TEST_F(DocumentsTest, ShowsATextAnewToAServerThatTakesNoChanges) {
  open_all({.sync = Capabilities::Sync::none});
  const std::string path = write("a.c", "one");
  documents.look(path);
  write("a.c", "two");
  documents.look(path);
  EXPECT_EQ(news(), (Lines{"didOpen a.c 1 \"one\"", "didClose a.c", "didOpen a.c 2 \"two\""}));
}

TEST_F(DocumentsTest, SendsNothingToAServerThatWantsNoDocuments) {
  open_all({.takes_documents = false, .sync = Capabilities::Sync::none});
  const std::string path = write("a.c", "one");
  EXPECT_EQ(documents.look(path)->text.str(), "one");
  write("a.c", "two");
  EXPECT_EQ(documents.look(path)->text.str(), "two");
  EXPECT_EQ(news(), Lines{});
}

TEST_F(DocumentsTest, ClosesWhatCannotBeReadAnyMore) {
  open_all();
  const std::string path = write("a.c", "one");
  documents.look(path);
  std::filesystem::remove(path);
  EXPECT_EQ(documents.look(path), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(news().back(), "didClose a.c");
  EXPECT_EQ(documents.look(folder.path()), nullptr);
  EXPECT_EQ(errno, EISDIR);
}

TEST_F(DocumentsTest, KeepsOnlySoManyFromDiskOpen) {
  open_all();
  const std::string first = write("first.c", "");
  const std::string second = write("second.c", "");
  documents.client_opens(1, folder.file("client.c"), "c", "mine");
  documents.look(first);
  documents.look(second);
  documents.look(first);
  for (std::size_t i = 2; i < Documents::most_from_disk; ++i) documents.look(write(std::to_string(i) + ".c", ""));
  news();
  documents.look(write("last.c", ""));
  EXPECT_EQ(news(), (Lines{"didOpen last.c 66 \"\"", "didClose second.c"}));
}

TEST_F(DocumentsTest, KeepsOnlySoManyBytesFromDiskOpen) {
  std::vector<std::string> said;
  Documents few([&](std::string_view method, const std::string&) { said.emplace_back(method); }, 100);
  few.open_all({});
  for (const char* name : {"1.c", "2.c", "3.c"}) few.look(write(name, std::string(40, 'x')));
  EXPECT_EQ(few.size(), 2U);
  EXPECT_EQ(few.find(folder.file("1.c")), nullptr);
  EXPECT_EQ(said.back(), "textDocument/didClose");
  write("2.c", std::string(90, 'x'));
  few.server_ended();
  few.open_all({});
  EXPECT_EQ(few.size(), 1U);
  EXPECT_NE(few.look(write("large.c", std::string(200, 'x'))), nullptr);
  EXPECT_EQ(few.size(), 1U);
}

TEST_F(DocumentsTest, OpensAllAgainInANewLifeWithTheTextsOfThatTime) {
  open_all();
  documents.look(write("a.c", "one"));
  documents.look(write("gone.c", "one"));
  documents.client_opens(1, folder.file("mine.c"), "c", "mine");
  EXPECT_TRUE(documents.find(folder.file("a.c"))->is_first_text);
  documents.server_ended();
  news();
  write("a.c", "two");
  std::filesystem::remove(folder.file("gone.c"));
  documents.client_changes(1, folder.file("mine.c"), {{std::nullopt, "mine, later"}});
  EXPECT_EQ(news(), Lines{});
  open_all();
  EXPECT_EQ(news(), (Lines{"didOpen a.c 5 \"two\"", "didOpen mine.c 6 \"mine, later\""}));
  EXPECT_TRUE(documents.find(folder.file("a.c"))->is_first_text);
}

TEST_F(DocumentsTest, KnowsWhichTextTheServerSawFirst) {
  open_all();
  const std::string path = write("a.c", "one");
  EXPECT_TRUE(documents.look(path)->is_first_text);
  write("a.c", "two");
  EXPECT_FALSE(documents.look(path)->is_first_text);
  documents.note_known(folder.file("b.c"));
  EXPECT_FALSE(documents.look(write("b.c", ""))->is_first_text);
}

TEST_F(DocumentsTest, TakesAClientsChangesInTheServersUnits) {
  open_all({.encoding = Encoding::utf16});
  const std::string path = folder.file("never-on-disk.c");
  documents.client_opens(1, path, "c",
                         "\xF0\x9F\x98\x80"
                         "ab\nnext");
  const Documents::Change insert{{{Position{0, 2}, Position{0, 3}}}, "X"};
  const Documents::Change remove{{{Position{0, 4}, Position{1, 0}}}, ""};
  EXPECT_TRUE(documents.client_changes(1, path, {insert, remove}));
  EXPECT_EQ(documents.find(path)->text.str(),
            "\xF0\x9F\x98\x80"
            "Xbnext");
  EXPECT_FALSE(documents.client_changes(1, folder.file("unknown.c"), {insert}));
}

TEST_F(DocumentsTest, ForgetsWhatIsOnDiskOnly) {
  open_all();
  documents.look(write("a.c", "one"));
  documents.client_opens(1, folder.file("mine.c"), "c", "mine");
  documents.forget_disk();
  EXPECT_EQ(documents.size(), 1U);
  documents.client_gone(1);
  EXPECT_EQ(documents.size(), 0U);
}

TEST_F(DocumentsTest, RemembersOnlySoManyBytesOfPathsThatAServerNamed) {
  open_all();
  documents.note_known('/' + std::string(1 << 20, 'x'));
  EXPECT_TRUE(documents.look(write("a.c", ""))->is_first_text);
  const std::string start = '/' + std::string(4000, 'x');
  for (int i = 0; i < 5000; ++i) documents.note_known(start + std::to_string(i));
  EXPECT_FALSE(documents.look(write("b.c", ""))->is_first_text) << "it may have seen any";
}

}  // namespace
}  // namespace duet::bridge
