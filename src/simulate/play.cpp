#include "simulate/play.h"

#include <algorithm>

#include "simulate/random.h"

namespace duet::simulate {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::hours for_ever{100'000};

milliseconds some_time(Random& chance) {
  switch (chance.below(6)) {
    case 0:
      return milliseconds(0);
    case 1:
      return milliseconds(chance.below(20));
    case 2:
    case 3:
      return milliseconds(chance.below(2'000));
    case 4:
      return milliseconds(chance.below(30'000));
    default:
      return milliseconds(chance.below(200));
  }
}

}  // namespace

std::string Play::whole_output() const {
  std::string all;
  for (const Line& line : output) all += line.text;
  return all;
}

std::string prompt_of(std::uint64_t number) { return "play " + std::to_string(number); }

std::string endless_prompt_of(std::uint64_t number) { return "endless " + std::to_string(number); }

std::string long_prompt_of(std::uint64_t number) { return "long " + std::to_string(number); }

Play play_of(std::string_view prompt, std::uint32_t attempt) {
  std::uint64_t number = 0xcbf29ce484222325;
  for (const char byte : prompt) number = (number ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  Random chance(number + attempt);
  Play play;
  play.can_start = !chance.one_in(30);
  play.main = {some_time(chance), chance.one_in(6)};
  play.code = chance.one_in(3) ? static_cast<int>(chance.between(1, 3)) : 0;
  const milliseconds usual_life = play.main.life;
  if (prompt.starts_with("endless")) {
    play.can_start = true;
    play.main.life = for_ever;
  }
  if (prompt.starts_with("long")) play.main.life += std::chrono::seconds(number % 300);
  if (chance.one_in(4)) {
    for (std::uint64_t i = chance.between(1, 2); i > 0; --i) {
      const milliseconds life = chance.one_in(3) ? milliseconds(for_ever) : play.main.life + some_time(chance);
      play.others.push_back({life, chance.one_in(2)});
    }
  }
  for (std::uint64_t i = chance.below(4); i > 0; --i) {
    const milliseconds at(chance.below(static_cast<std::uint64_t>(usual_life.count()) + 1));
    const std::uint64_t which = chance.below(1'000'000);
    const task::Stream stream = which % 3 == 0 ? task::Stream::err : task::Stream::out;
    std::string line = "line " + std::to_string(which);
    if (chance.one_in(50)) line.append(chance.one_in(8) ? chance.below(80'000) : chance.below(5'000), '.');
    play.output.push_back({at, line + '\n', stream});
  }
  std::ranges::stable_sort(play.output, {}, &Play::Line::at);
  play.used = {std::chrono::microseconds(chance.below(100'000'000)), chance.below(std::uint64_t{1} << 34U)};
  return play;
}

}  // namespace duet::simulate
