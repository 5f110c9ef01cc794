// What time it is for the daemon. The browser may be another machine, whose clock is off.

let ahead = 0;  // milliseconds by which the daemon's clock is ahead of ours

/** The daemon's time in an answer, with when we asked and heard it. @param {number} told @param {number} asked @param {number} heard */
export function setDaemonClock(told, asked, heard) {
  const difference = told - (asked + heard) / 2;
  const tolerance = heard - asked + 1000;  // less is how long answers take, and would only make times jump
  if (Math.abs(difference - ahead) <= tolerance) return;
  ahead = Math.abs(difference) > tolerance ? difference : 0;
}

/** Milliseconds since 1970, comparable with the times in records and events. */
export function daemonNow() {
  return Date.now() + ahead;
}
