#include "app/doors/secrets.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "duet/base/base64.h"

namespace duet::app {

std::string random_text(std::size_t bytes) {
  std::string random(bytes, '\0');
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t count = getrandom(random.data() + done, bytes - done, 0);
    if (count < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  std::string text = base::to_base64(random);
  text.erase(std::min(text.find('='), text.size()));
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

bool is_same_secret(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned int difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned int>(static_cast<unsigned char>(other[i]));
  }
  const volatile unsigned int all = difference;  // no answer before the last of them
  return all == 0;
}

}  // namespace duet::app
