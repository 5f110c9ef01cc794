#pragma once

/// Marks what the shared library exports; everything else in it is hidden. A class that is thrown must have it, or a
/// user could not catch it.
#define DUET_API [[gnu::visibility("default")]]
