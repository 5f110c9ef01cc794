#include "task/contact.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::task {
namespace {

class ContactTest : public testing::Test {
 protected:
  transport::TemporaryFolder folder_;
  base::Fd place_{open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(ContactTest, MessagesGoBothWays) {
  const base::Fd listener = listen_in(place_.get(), "contact");
  EXPECT_FALSE(accept_contact(listener.get()));
  base::Fd near = connect_in(place_.get(), "contact");
  ASSERT_TRUE(near);
  EXPECT_TRUE(send_message(near.get(), {.kind = Message::Kind::follow, .attempt = 2, .task = 7, .value = 9}));
  const base::Fd far = accept_contact(listener.get());
  const Received received = receive_message(far.get());
  ASSERT_TRUE(received.message);
  EXPECT_EQ(received.message->kind, Message::Kind::follow);
  EXPECT_EQ(received.message->run(), (RunId{7, 2}));
  EXPECT_EQ(received.message->value, 9U);
  EXPECT_FALSE(receive_message(far.get()).closed);
  EXPECT_TRUE(send_message(far.get(), {}));
  EXPECT_TRUE(receive_message(near.get()).message);
  near.reset();
  EXPECT_TRUE(receive_message(far.get()).closed);
  EXPECT_FALSE(send_message(far.get(), {}));
}

TEST_F(ContactTest, AReportCarriesAllThatAKeeperKnows) {
  const base::Fd listener = listen_in(place_.get(), "contact");
  const base::Fd near = connect_in(place_.get(), "contact");
  const base::Fd far = accept_contact(listener.get());
  const base::UtcTime at{std::chrono::seconds(1'700'000'000)};
  Message message{.kind = Message::Kind::report, .attempt = 2, .task = 7};
  message.report = Report{.started = Started{.pid = 4711, .at = at}, .gone = true};
  message.report->outcome = Outcome{.kind = Outcome::Kind::signalled,
                                    .code = -1,
                                    .signal = 9,
                                    .timed_out = true,
                                    .ended_at = at + std::chrono::seconds(1),
                                    .usage = Usage{std::chrono::microseconds(5), 6, 7},
                                    .problem = std::string(5'000, 'p'),
                                    .result = std::string(64 * 1024, '\xff')};
  ASSERT_TRUE(send_message(near.get(), message));
  const Received received = receive_message(far.get());
  ASSERT_TRUE(received.message && received.message->report && received.message->report->outcome);
  EXPECT_EQ(received.message->run(), (RunId{7, 2}));
  const Report& report = *received.message->report;
  EXPECT_TRUE(report.gone);
  EXPECT_EQ(report.started->pid, 4711);
  EXPECT_EQ(report.outcome->kind, Outcome::Kind::signalled);
  EXPECT_EQ(report.outcome->code, -1);
  EXPECT_EQ(report.outcome->signal, 9);
  EXPECT_TRUE(report.outcome->timed_out);
  EXPECT_EQ(report.outcome->started->at, at);
  EXPECT_EQ(report.outcome->ended_at, at + std::chrono::seconds(1));
  EXPECT_EQ(report.outcome->usage, (Usage{std::chrono::microseconds(5), 6, 7}));
  EXPECT_EQ(report.outcome->problem, std::string(1'024, 'p'));
  EXPECT_EQ(report.outcome->result, message.report->outcome->result);
}

// What version 0.1 sends and expects: 24 bytes, without anything behind them.
TEST_F(ContactTest, MessagesKeepTheirLayout) {
  const base::Fd listener = listen_in(place_.get(), "contact");
  const base::Fd near = connect_in(place_.get(), "contact");
  const base::Fd far = accept_contact(listener.get());
  struct {
    std::uint32_t kind = 2, attempt = 3;
    std::uint64_t task = 7, value = 9;
  } old;
  static_assert(sizeof old == 24);
  ASSERT_EQ(send(near.get(), &old, sizeof old, 0), 24);
  const Received received = receive_message(far.get());
  ASSERT_TRUE(received.message);
  EXPECT_EQ(received.message->kind, Message::Kind::output);
  EXPECT_EQ(received.message->run(), (RunId{7, 3}));
  EXPECT_EQ(received.message->value, 9U);
  ASSERT_TRUE(send_message(far.get(), {.kind = Message::Kind::acknowledged, .attempt = 4, .task = 8, .value = 1}));
  std::array<char, 100> bytes;
  ASSERT_EQ(recv(near.get(), bytes.data(), bytes.size(), 0), 24);
  std::memcpy(&old, bytes.data(), sizeof old);
  EXPECT_EQ(old.kind, 6U);
  EXPECT_EQ(old.attempt, 4U);
  EXPECT_EQ(old.task, 8U);
  EXPECT_EQ(old.value, 1U);
}

TEST_F(ContactTest, TheSocketIsForTheUserAlone) {
  const mode_t before = umask(0);
  const base::Fd listener = listen_in(place_.get(), "contact");
  umask(before);
  struct stat status {};
  ASSERT_EQ(fstatat(place_.get(), "contact", &status, 0), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(ContactTest, WithoutAListenerNobodyIsThere) {
  EXPECT_FALSE(connect_in(place_.get(), "contact"));
  listen_in(place_.get(), "contact");
  EXPECT_FALSE(connect_in(place_.get(), "contact"));
}

TEST_F(ContactTest, AMessageToSomebodyWhoDoesNotReadIsGivenUp) {
  const base::Fd listener = listen_in(place_.get(), "contact");
  const base::Fd near = connect_in(place_.get(), "contact");
  int sent = 0;
  while (send_message(near.get(), {}) && sent < 100'000) ++sent;
  EXPECT_LT(sent, 100'000);
}

TEST_F(ContactTest, PacketsCarryDescriptors) {
  const base::Fd listener = listen_in(place_.get(), "contact");
  const base::Fd near = connect_in(place_.get(), "contact");
  const std::array<int, 2> descriptors{place_.get(), listener.get()};
  ASSERT_TRUE(send_packet(near.get(), std::string(max_packet_bytes, 'x'), descriptors));
  const base::Fd far = accept_contact(listener.get());
  const auto packet = receive_packet(far.get());
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->bytes.size(), max_packet_bytes);
  ASSERT_EQ(packet->descriptors.size(), 2U);
  EXPECT_TRUE(connect_in(packet->descriptors[0].get(), "contact"));
  EXPECT_EQ(fcntl(packet->descriptors[0].get(), F_GETFD), FD_CLOEXEC);
}

}  // namespace
}  // namespace duet::task
