#include "task/nursery.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

#include "process/process_tree.h"
#include "task/contact.h"
#include "task/keeper_process.h"
#include "task/outsider.h"
#include "task/run_record.h"

namespace duet::task {
namespace {

constexpr int orders_number = 3;
constexpr int tasks_number = 4;
constexpr int burial_ms = 1000;
// A keeper is no part of the task that started its daemon, and needs no way to the queue's database.
constexpr std::array not_for_keepers{"DUET_TASK_ID",   "DUET_TASK_MARK", "DUET_TASK_FENCE", "DUET_TASK_WORKER",
                                     "DUET_RPC_STORE", "PGPASSWORD",     "PGPASSFILE"};
constexpr itimerval wait_for_keepers{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 100'000}};

void handle_signal(int signal, void (*how)(int)) {
  struct sigaction action {};
  action.sa_handler = how;
  sigaction(signal, &action, nullptr);
}

[[noreturn]] void keep_and_exit(base::Fd listener, const std::string& name) {
  int code = 0;
  try {
    close(orders_number);
    setsid();
    handle_signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_NAME, "duet-keeper");
    run_keeper(tasks_number, std::move(listener));
  } catch (const std::exception&) {
    code = 1;  // the record says how far it came
  }
  unlinkat(tasks_number, name.c_str(), 0);
  _exit(code);
}

// A keeper that ends now would be left to init, which may take its time to reap it. One with a running task stays: the
// alarm ends the wait, and this process.
void reap_idle_keepers() {
  handle_signal(SIGALRM, SIG_DFL);
  setitimer(ITIMER_REAL, &wait_for_keepers, nullptr);
  waitpid(-1, nullptr, 0);  // returns when there is no child left
}

bool is_alive(const KeeperLink& link) {
  char byte = 0;
  const ssize_t count = recv(link.socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && errno == EAGAIN);
}

}  // namespace

int run_nursery() {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(orders_number, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) return 1;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGXFSZ})
    handle_signal(signal, SIG_IGN);
  handle_signal(SIGCHLD, SIG_IGN);  // nobody asks how a keeper ended
  prctl(PR_SET_NAME, "duet-nursery");
  close_range(tasks_number + 1, ~0U, 0);
  umask(077);
  while (auto packet = receive_packet(orders_number)) {
    if (packet->descriptors.size() != 1) continue;
    const pid_t pid = fork();
    if (pid == 0) keep_and_exit(std::move(packet->descriptors.front()), packet->bytes);
    if (pid < 0) refuse_order(std::move(packet->descriptors.front()), errno);
  }
  reap_idle_keepers();
  return 0;
}

Nursery::Nursery(transport::Loop& loop, int tasks, int executable, std::chrono::milliseconds spare_time)
    : loop_(loop), tasks_(tasks), executable_(executable), spare_time_(spare_time) {}

Nursery::~Nursery() {
  std::ranges::for_each(spares_, [this](const Spare& spare) { let_go(spare); });
  spares_.clear();
  if (!process_) return;
  watch_.cancel();
  socket_.reset();
  pollfd ended{.fd = process_->pidfd.get(), .events = POLLIN, .revents = 0};
  if (poll(&ended, 1, burial_ms) <= 0) kill(process_->pid, SIGKILL);
  process::reap(*process_);
}

KeeperLink Nursery::take() {
  while (!spares_.empty()) {
    Spare spare = std::move(spares_.back());
    spares_.pop_back();
    if (is_alive(spare.link) && tell_acknowledged(spare)) return std::move(spare.link);
    unlinkat(tasks_, spare.link.name.c_str(), 0);
  }
  if (!process_) launch();
  wake();
  KeeperLink link{.name = new_contact_name()};
  base::Fd listener = listen_in(tasks_, link.name);
  link.socket = connect_in(tasks_, link.name);
  if (!link.socket) {
    const int error = errno;
    unlinkat(tasks_, link.name.c_str(), 0);
    throw std::system_error(error, std::generic_category(), "connect");
  }
  waiting_.push_back({std::move(listener), link.name});
  send_waiting();
  return link;
}

void Nursery::put_back(KeeperLink link, std::optional<RunId> acknowledged) {
  spares_.push_back({std::move(link), acknowledged, loop_.now()});
  if (!timer_) timer_ = loop_.after(spare_time_, [this] { let_go_of_old(); });
}

void Nursery::wake() const {
  if (process_) process::signal_process(process_->pidfd, SIGCONT);  // which one that runs does not notice
}

bool Nursery::tell_acknowledged(const Spare& spare) {
  if (!spare.acknowledged) return true;
  const Message message{
      .kind = Message::Kind::acknowledged, .attempt = spare.acknowledged->attempt, .task = spare.acknowledged->task};
  return send_message(spare.link.socket.get(), message);
}

void Nursery::let_go(const Spare& spare) const {
  tell_acknowledged(spare);
  unlinkat(tasks_, spare.link.name.c_str(), 0);  // it does that itself, unless it was killed
}

void Nursery::let_go_of_old() {
  std::erase_if(spares_, [this](const Spare& spare) {
    if (loop_.now() - spare.since < spare_time_) return false;
    let_go(spare);
    return true;
  });
  if (!spares_.empty()) timer_ = loop_.at(spares_.front().since + spare_time_, [this] { let_go_of_old(); });
}

void Nursery::launch() {
  std::array<int, 2> ends{};
  base::check_call(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  base::Fd ours(ends[0]);
  const base::Fd theirs(ends[1]);
  process::Launch launch;
  launch.arguments = {"duet-rpc", std::string(nursery_argument)};
  launch.environment = process::current_environment();
  for (const char* name : not_for_keepers) launch.environment.erase(name);
  launch.environment[std::string(nursery_variable)] = "1";
  launch.directory = "/";
  launch.further = {{theirs.get(), orders_number}, {tasks_, tasks_number}};
  launch.executable = executable_;
  transport::Loop::Watch watch = loop_.watch(ours.get(), EPOLLIN, *this);  // before anything runs: it may be refused
  process_ = process::launch(launch);
  socket_ = std::move(ours);
  watch_ = std::move(watch);
}

void Nursery::send_waiting() {
  while (!waiting_.empty()) {
    const std::array<int, 1> listener{waiting_.front().socket.get()};
    if (!send_packet(socket_.get(), waiting_.front().name, listener)) break;
    waiting_.pop_front();
  }
  const std::uint32_t writable = waiting_.empty() ? 0U : static_cast<std::uint32_t>(EPOLLOUT);
  watch_.change(EPOLLIN | writable);
}

void Nursery::on_ready(std::uint32_t events) {
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return send_waiting();
  watch_.cancel();
  socket_.reset();
  process::reap(*process_);
  process_.reset();
  waiting_.clear();
}

}  // namespace duet::task
