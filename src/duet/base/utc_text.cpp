#include "duet/base/utc_text.h"

#include <cstring>

namespace duet::base {
namespace {

// `digits` decimal digits of `number`, with leading zeros.
void put_digits(char* to, std::uint64_t number, int digits) {
  for (int i = digits - 1; i >= 0; --i, number /= 10) to[i] = static_cast<char>('0' + number % 10);
}

}  // namespace

void UtcText::append(std::string& out, std::chrono::system_clock::time_point time) {
  const std::size_t before = out.size();
  out.resize(before + size);
  write(&out[before], time);
}

void UtcText::write(char* to, std::chrono::system_clock::time_point time) {
  using namespace std::chrono;
  const auto second = floor<seconds>(time);
  if (second.time_since_epoch().count() != second_) {
    const auto day = floor<days>(second);
    const year_month_day date(day);
    const hh_mm_ss clock(second - day);
    second_ = second.time_since_epoch().count();
    second_text_ = {'0', '0', '0', '0', '-', '0', '0', '-', '0', '0', 'T', '0', '0', ':', '0', '0', ':', '0', '0', '.'};
    put_digits(&second_text_[0], static_cast<std::uint64_t>(static_cast<int>(date.year())), 4);
    put_digits(&second_text_[5], static_cast<unsigned>(date.month()), 2);
    put_digits(&second_text_[8], static_cast<unsigned>(date.day()), 2);
    put_digits(&second_text_[11], static_cast<std::uint64_t>(clock.hours().count()), 2);
    put_digits(&second_text_[14], static_cast<std::uint64_t>(clock.minutes().count()), 2);
    put_digits(&second_text_[17], static_cast<std::uint64_t>(clock.seconds().count()), 2);
  }
  std::memcpy(to, second_text_.data(), second_text_.size());
  put_digits(to + second_text_.size(), static_cast<std::uint64_t>(floor<milliseconds>(time - second).count()), 3);
  to[size - 1] = 'Z';
}

std::string utc_text(std::chrono::system_clock::time_point time) {
  std::string out;
  UtcText().append(out, time);
  return out;
}

}  // namespace duet::base
