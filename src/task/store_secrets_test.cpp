#include "task/store_secrets.h"

#include <gtest/gtest.h>

namespace duet::task {
namespace {

TEST(StoreSecrets, WhatLeadsToTheQueueIsTakenOutAndNothingElse) {
  const process::Environment all{{"DUET_RPC_STORE", "postgresql://u:p@h"},
                                 {"PGPASSWORD", "p"},
                                 {"PGPASSFILE", "~/.pgpass"},
                                 {"PGHOST", "h"},
                                 {"DUET_RPC_CONFIG", "c"},
                                 {"PATH", "/bin"}};
  EXPECT_EQ(without_store_secrets(all),
            (process::Environment{{"PGHOST", "h"}, {"DUET_RPC_CONFIG", "c"}, {"PATH", "/bin"}}));
}

}  // namespace
}  // namespace duet::task
