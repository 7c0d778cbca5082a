// Loaded into a process under test beside its program (`node --expose-gc --import …/probe.mjs`): answers its parent's
// questions about memory. Nothing of it is in the product.
import { readdirSync } from 'node:fs';
import { writeHeapSnapshot } from 'node:v8';

process.on('message', (question) => {
  if (question?.type === 'measure') process.send({ type: 'measured', ...measure() });
  if (question?.type === 'snapshot') process.send({ type: 'written', path: writeHeapSnapshot(question.path) });
});
// The channel keeps a process only as long as its program wants it to.
process.channel?.unref();

function measure() {
  // The first finds what the second can free: buffers whose owners are gone.
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
