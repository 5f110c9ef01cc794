#include "app/doors/tls_files.h"

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

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

TEST(TlsFilesTest, AListThatWasInForceMustNotVanish) {
  const TemporaryProject place;
  EXPECT_THROW(read_revoked(place.path() / "revoked", {first_print}), RevokedFault);
  TemporaryProject::write(place.path() / "revoked", "");
  EXPECT_TRUE(read_revoked(place.path() / "revoked", {first_print}).empty()) << "somebody has emptied it";
}

TEST(TlsFilesTest, ALinkToNothingIsNoMissingList) {
  const TemporaryProject place;
  std::filesystem::create_symlink(place.path() / "nothing", place.path() / "revoked");
  EXPECT_THROW(read_revoked(place.path() / "revoked"), RevokedFault);
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

TEST(TlsFilesTest, AuthoritiesThatEndSoonAreToldUnlessTheyAreRenewed) {
  using std::chrono::hours;
  const base::UtcTime now = base::UtcTime(hours(24 * 365 * 57));
  const auto authority = [now](const std::string& subject, int days) {
    transport::TlsCertificate made;
    made.subject = subject;
    made.not_after = now + hours(24 * days);
    return made;
  };
  const auto ending = [now](const std::vector<transport::TlsCertificate>& all) {
    std::vector<std::string> names;
    for (const transport::TlsCertificate& each : ending_authorities(all, now)) names.push_back(each.subject);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(ending({authority("CN=a", 31), authority("CN=b", 29), authority("CN=c", -1)}), (Names{"CN=b", "CN=c"}));
  EXPECT_EQ(ending({authority("CN=a", -1), authority("CN=a", 300)}), Names{});
  EXPECT_EQ(ending({authority("CN=a", -1), authority("CN=a", 3)}), (Names{"CN=a", "CN=a"}));
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
