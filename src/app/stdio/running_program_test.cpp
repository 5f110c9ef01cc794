#include "app/stdio/running_program_test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

int milliseconds_until(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

// Appends what is there; false at the end of the stream.
bool append_from(const base::Fd& fd, std::string& to) {
  std::array<char, 65536> some;
  const ssize_t count = read(fd.get(), some.data(), some.size());
  if (count > 0) to.append(some.data(), static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

RunningProgram::RunningProgram(std::vector<std::string> arguments, std::vector<std::string> environment) {
  base::Pipe input = base::make_pipe();
  base::Pipe output = base::make_pipe();
  base::Pipe errors = base::make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.read_end.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.write_end.get(), STDERR_FILENO);
  std::string program = DUET_RPC_PROGRAM;
  std::vector<char*> argv{program.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  for (char** ours = environ; *ours != nullptr; ++ours) variables.push_back(*ours);
  variables.push_back(nullptr);
  EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), variables.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  input_ = std::move(input.write_end);
  output_ = std::move(output.read_end);
  errors_ = std::move(errors.read_end);
  base::set_nonblocking(input_.get(), true);
  exit_ = base::Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

RunningProgram::~RunningProgram() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void RunningProgram::send(std::string_view body) {
  send_bytes("Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
}

void RunningProgram::send_bytes(std::string_view bytes) {
  EXPECT_EQ(send_what_is_taken(bytes, patience), bytes.size());
}

std::size_t RunningProgram::send_what_is_taken(std::string_view bytes, std::chrono::milliseconds stalled) {
  std::size_t sent = 0;
  pollfd ready{input_.get(), POLLOUT, 0};
  while (sent < bytes.size() && poll(&ready, 1, static_cast<int>(stalled.count())) > 0) {
    const ssize_t count = write(input_.get(), bytes.data() + sent, bytes.size() - sent);
    if (count < 0 && errno != EAGAIN) break;
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
  return sent;
}

void RunningProgram::signal(int number) const { EXPECT_EQ(kill(pid_, number), 0); }

// Waits for output or log, whichever comes; false: neither does any more.
bool RunningProgram::read_some(Deadline deadline, bool output) {
  std::array<pollfd, 2> ready{{{errors_.get(), POLLIN, 0}, {output ? output_.get() : -1, POLLIN, 0}}};
  if (poll(ready.data(), ready.size(), milliseconds_until(deadline)) <= 0) return false;
  if (ready[0].revents != 0 && !append_from(errors_, log_)) errors_.reset();
  if (ready[1].revents != 0 && !append_from(output_, received_)) return false;
  return true;
}

bool RunningProgram::take_frame(std::string& body) {
  constexpr std::string_view start = "Content-Length: ";
  const std::size_t header_end = received_.find("\r\n\r\n");
  if (header_end == std::string::npos) return false;
  EXPECT_TRUE(received_.starts_with(start)) << received_;
  std::size_t size = 0;
  std::from_chars(received_.data() + start.size(), received_.data() + header_end, size);
  if (received_.size() < header_end + 4 + size) return false;
  body = received_.substr(header_end + 4, size);
  received_.erase(0, header_end + 4 + size);
  return true;
}

std::string RunningProgram::next_body() {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  std::string body;
  while (!take_frame(body) && read_some(deadline, true)) continue;
  return body;
}

bool RunningProgram::logs(std::string_view text) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  while (log_.find(text) == std::string::npos && errors_ && read_some(deadline, false)) continue;
  return log_.find(text) != std::string::npos;
}

int RunningProgram::exit_code_within(std::chrono::milliseconds limit) {
  pollfd ended{exit_.get(), POLLIN, 0};
  if (poll(&ended, 1, static_cast<int>(limit.count())) <= 0) return -1;
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  while (errors_ && append_from(errors_, log_)) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string RunningProgram::rest_of_output() {
  while (append_from(output_, received_)) continue;
  return received_;
}

}  // namespace duet::app
