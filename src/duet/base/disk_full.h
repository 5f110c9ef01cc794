#pragma once

#include <cerrno>

namespace duet::base {

/// Whether a system call was refused for want of room on the disk, which may pass.
inline bool is_disk_full(int error) { return error == ENOSPC || error == EDQUOT; }

}  // namespace duet::base
