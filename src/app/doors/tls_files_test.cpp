#include "app/doors/tls_files.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

const std::string first_print(64, 'a');
const std::string second_print(64, 'b');

std::string fault_of_list(const TemporaryProject& place, const std::string& text) {
  TemporaryProject::write(place.path() / "revoked", text);
  try {
    read_revoked(place.path() / "revoked");
    return "";
  } catch (const std::runtime_error& fault) {
    return fault.what();
  }
}

TEST(TlsFilesTest, RelativeNamesStandInTheFolder) {
  const TlsFiles files = files_of({.certificate = "/etc/x.pem"}, "/place/tls");
  EXPECT_EQ(files.certificate, "/etc/x.pem");
  EXPECT_EQ(files.key, "/place/tls/server.key");
  EXPECT_EQ(files.revoked, "/place/tls/revoked");
}

TEST(TlsFilesTest, AListThatIsNotThereIsEmpty) {
  const TemporaryProject place;
  EXPECT_TRUE(read_revoked(place.path() / "revoked").empty());
}

TEST(TlsFilesTest, AListHasFingerprintsAndComments) {
  const TemporaryProject place;
  TemporaryProject::write(place.path() / "revoked",
                          "# old ones\r\n\n  " + first_print + "  # laptop\nsha256:" + std::string(64, 'B'));
  EXPECT_EQ(read_revoked(place.path() / "revoked"), (std::set<std::string>{first_print, second_print}));
}

TEST(TlsFilesTest, ALineThatNobodyUnderstandsIsAFault) {
  const TemporaryProject place;
  EXPECT_NE(fault_of_list(place, first_print + "\nlaptop\n").find("revoked:2: not the SHA-256"), std::string::npos);
  EXPECT_NE(fault_of_list(place, first_print.substr(1)).find("revoked:1:"), std::string::npos);
  EXPECT_EQ(fault_of_list(place, ""), "");
}

TEST(TlsFilesTest, AMissingFileIsNamed) {
  const TemporaryProject place;
  try {
    read_tls_files(files_of({}, place.path()));
    FAIL();
  } catch (const std::runtime_error& fault) {
    EXPECT_EQ(std::string(fault.what()), place.path().string() + "/server.pem: there is no such file");
  }
}

}  // namespace
}  // namespace duet::app
