// Loaded into a node before its program (`--import`), so that a test can give it faults: `NodeProcess.ask`.
//
// F1. `{ clockAheadMs }`: from now on its wall clock shows so much more than that of the machine.
// F2. `{ diskHangs }`: its disk neither completes nor fails writes and syncs, until it no longer hangs.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const wallMs = Date.now;
let clockAheadMs = 0;
Date.now = () => wallMs() + clockAheadMs;

/** Longer than a node tolerates on its event loop, so that it syncs in the thread pool from then on. */
const SLOW_SYNC_MS = 50;
const { writev, fdatasync, fdatasyncSync } = fs;
let hangs = false;
/** Begun while the disk hung. */
let held = [];

fs.writev = (...args) => {
  if (hangs) held.push(() => writev(...args));
  else writev(...args);
};
fs.fdatasync = (...args) => {
  if (hangs) held.push(() => fdatasync(...args));
  else fdatasync(...args);
};
fs.fdatasyncSync = (fd) => {
  if (hangs) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SLOW_SYNC_MS);
  fdatasyncSync(fd);
};
syncBuiltinESMExports();

process.on('message', (fault) => {
  if ('clockAheadMs' in fault) clockAheadMs = fault.clockAheadMs;
  if ('diskHangs' in fault) {
    hangs = fault.diskHangs;
    const begun = held;
    held = [];
    if (hangs) held = begun;
    else for (const go of begun) go();
  }
  process.send({ done: true });
});
