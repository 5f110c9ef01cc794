"""What the checker's tasks run: FOLDER TOKEN SECONDS CODE. It writes down when it began and ended, under which fence.

Whoever begins also says whether an earlier attempt of the same task is still alive: `overlap` is what must never be.
"""

import os
import subprocess
import sys
import time


def started(pid):
    """When that process began, in ticks since boot; None: it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            text = file.read()
    except OSError:
        return None
    words = text[text.rfind(")") + 2:].split()
    return None if words[0] in "ZX" else words[19]


folder, token, seconds, code = sys.argv[1:5]
fence, worker = os.environ["DUET_TASK_FENCE"], os.environ["DUET_TASK_WORKER"]
log = os.open(os.path.join(folder, token), os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)


def say(word, *more):
    os.write(log, (" ".join([word, fence, worker, f"{time.time():.3f}", *more]) + "\n").encode())


for line in os.pread(log, 1 << 20, 0).decode().splitlines():
    words = line.split()
    if words[0] == "begin" and started(words[4]) == words[5]:
        say("overlap", *words[1:3])
say("begin", str(os.getpid()), started(os.getpid()))
if int(token[-1], 16) % 4 == 0:
    subprocess.Popen(["sleep", seconds])  # which nobody waits for
print(token, flush=True)
time.sleep(float(seconds))
print("end", flush=True)
say("end", code)
os._exit(int(code))
