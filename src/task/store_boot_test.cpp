#include <filesystem>
#include <fstream>

#include "process/process_tree.h"
#include "task/store_files.h"
#include "task/store_fixture_test.h"

namespace duet::task {
namespace {

namespace fs = std::filesystem;

// The index beside the log is never synced: after a power cut it may tell of commits that the log never had on disk.
TEST(StoreBoot, AnIndexThatAnotherBootLeftIsNotBelieved) {
  StoreBox box;
  box.open();
  ASSERT_TRUE(box.add(1));
  box.open();
  ASSERT_TRUE(box.add(2));
  const transport::TemporaryFolder copy;
  for (const char* name : {store_file, store_log_file, store_index_file}) fs::copy(box.file(name), copy.file(name));
  fs::resize_file(copy.file(store_log_file), 0);
  const base::Fd folder = open_folder(copy.path());
  const auto damage = find_damage(folder.get());
  ASSERT_TRUE(damage);  // in this boot the index knows better
  EXPECT_NE(damage->find("is damaged or cut off"), std::string::npos) << *damage;

  std::ifstream file(copy.file(store_file), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::size_t at = bytes.find(process::boot_id());
  ASSERT_NE(at, std::string::npos);
  bytes[at] = bytes[at] == '0' ? '1' : '0';
  std::ofstream(copy.file(store_file), std::ios::binary) << bytes;
  EXPECT_FALSE(find_damage(folder.get()));
  StoreBox opened(copy.path());
  opened.open();
  EXPECT_TRUE(opened.find(1));
  EXPECT_FALSE(opened.find(2));
}

}  // namespace
}  // namespace duet::task
