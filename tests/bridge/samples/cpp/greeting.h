#pragma once

/// Counts the letters of a name.
int greet(const char* name);
