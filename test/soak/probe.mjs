// Loaded into a process under test in addition to its program (`node --expose-gc --import …/probe.mjs`). It answers its
// parent's questions about memory. The product contains none of it.
import { readdirSync } from 'node:fs';
import { writeHeapSnapshot } from 'node:v8';

process.on('message', (question) => {
  if (question?.type === 'measure') process.send({ type: 'measured', ...measure() });
  if (question?.type === 'snapshot') process.send({ type: 'written', path: writeHeapSnapshot(question.path) });
});
// The channel keeps a process alive only as long as its program does.
process.channel?.unref();

function measure() {
  // The first collection detects what the second one can free: buffers whose owners are gone.
  globalThis.gc();
  globalThis.gc();
  const { rss, heapUsed, external } = process.memoryUsage();
  return {
    rss,
    heapUsed,
    external,
    descriptors: readdirSync('/proc/self/fd').length,
    handles: process.getActiveResourcesInfo().length,
  };
}
