#pragma once

#include "task/agent.h"

namespace duet::task {

/// Whether the agent hands its prompt to a shell, or to another interpreter, as something to execute: the settings say
/// so (`shell = true`), or its command does. `sh -c {prompt}`, `env bash -lc "x {prompt}"`, `ssh host {prompt}`, behind
/// whatever other words, `python3 -c {prompt}`, and `bash` that reads the prompt on stdin all do; `sh -c 'agent "$1"'
/// sh {prompt}` does not. Where a word may be read in two ways, the answer is yes. A script may do so without anybody
/// seeing it here.
bool hands_prompt_to_shell(const Agent& agent);

}  // namespace duet::task
