#include "app/commands/cert_facts.h"

#include <boost/json/array.hpp>

#include "app/certificates/tls_folder.h"
#include "app/client/task_end.h"
#include "app/view/display_text.h"
#include "app/view/local_time.h"
#include "duet/base/utc_text.h"

namespace duet::app {

boost::json::object certificate_json(const Certificate& certificate, std::string_view state) {
  boost::json::object out{{"name", one_line(certificate.name)},
                          {"kind", kind_of(certificate)},
                          {"state", state},
                          {"beginsAt", base::utc_text(certificate.begins)},
                          {"expiresAt", base::utc_text(certificate.ends)},
                          {"fingerprint", certificate.fingerprint},
                          {"serial", certificate.serial},
                          {"subject", one_line(certificate.subject)},
                          {"issuer", one_line(certificate.issuer)},
                          {"key", one_line(certificate.key)}};
  out["role"] = certificate.role.empty() ? boost::json::value() : boost::json::value(one_line(certificate.role));
  boost::json::array names;
  for (const std::string& host : certificate.hosts) names.emplace_back(one_line(host));
  for (const std::string& other : certificate.others) names.emplace_back(one_line(other));
  out["names"] = std::move(names);
  return out;
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + one_line(name);
  return out.empty() ? "-" : out;
}

std::string day_text(base::UtcTime time) {
  constexpr std::string_view day = "2026-11-16";
  return date_and_time(time).substr(0, day.size());
}

Holdings present_holdings() { return read_holdings(tls_folder_path(), revoked_path()); }

void tell_notes(const CommandLine& line, const Holdings& holdings) {
  for (const std::string& note : holdings.notes) {
    print_aside(std::string(line.program) + ": left out: " + one_line(note) + '\n');
  }
}

Table::Paint paint_of_state(std::string_view state) {
  if (state == "valid") return Table::Paint::good;
  return state == "revoked" || state == "expired" ? Table::Paint::fault : Table::Paint::faint;
}

}  // namespace duet::app
