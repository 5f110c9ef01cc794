#pragma once

// DUET_TEST_UNDER_SANITIZER: one that needs memory and descriptors of its own watches the tests.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DUET_TEST_UNDER_SANITIZER
#endif
#endif
