#include "task/store_secrets.h"

namespace duet::task {

process::Environment without_store_secrets(process::Environment environment) {
  for (const char* name : {"DUET_RPC_STORE", "PGPASSWORD", "PGPASSFILE"}) environment.erase(name);
  return environment;
}

}  // namespace duet::task
