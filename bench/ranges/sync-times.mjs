// Loaded into a node that is measured, in addition to its program (`node --import …/sync-times.mjs`). It measures how
// long each synced write takes, from the call to its callback, and answers its parent's question. The product contains
// none of it.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/** Longer runs forget their first ones. */
const KEPT_MAX = 1_000_000;
/** Descriptors whose writes are synced. */
const synced = new Set();
let tookMs = [];

function took(beganMs) {
  if (tookMs.length < KEPT_MAX) tookMs.push(performance.now() - beganMs);
}

/** `counts`: whether a call with these arguments is a sync. Its last argument is called at the end. */
function measured(call, counts) {
  return (...args) => {
    if (!counts(args)) return call(...args);
    const beganMs = performance.now();
    const done = args.at(-1);
    return call(...args.slice(0, -1), (...results) => {
      took(beganMs);
      done(...results);
    });
  };
}

function opening(call) {
  return (path, flags, ...rest) => {
    const fd = call(path, flags, ...rest);
    if (typeof flags === 'number' && (flags & fs.constants.O_DSYNC) !== 0) synced.add(fd);
    else synced.delete(fd);
    return fd;
  };
}

const { fdatasyncSync } = fs;
fs.fdatasync = measured(fs.fdatasync, () => true);
fs.write = measured(fs.write, ([fd]) => synced.has(fd));
fs.writev = measured(fs.writev, ([fd]) => synced.has(fd));
fs.openSync = opening(fs.openSync);
fs.fdatasyncSync = (fd) => {
  const beganMs = performance.now();
  fdatasyncSync(fd);
  took(beganMs);
};
syncBuiltinESMExports();

process.on('message', (question) => {
  if (question?.type !== 'syncs') return;
  process.send({ tookMs });
  tookMs = [];
});
// The channel keeps a process alive only as long as its program does.
process.channel?.unref();
