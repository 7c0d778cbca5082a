/**
 * Sets flags of V8 for this process (docs/decisions/0066-v8-without-pretenuring.md). Import it before everything else:
 * V8 compiles and allocates with its defaults until then.
 */
import { setFlagsFromString } from 'node:v8';

// V8 moves whole places of allocation to the old generation where most of what they made survived a collection. A node
// with many requests in flight looks like that for a moment, and V8 does not come back from it: from then on requests
// that are long over keep alive what they refer to, and the leader takes 1.5 times the CPU time for each.
setFlagsFromString('--no-allocation-site-pretenuring');

// How much a function has run before it is compiled for speed; the default is 66 KiB of bytecode. Most of what a node
// does, it does a few hundred times a second: at the default it takes minutes to get there. Later versions have another
// compiler for what is not hot yet, and no such flag.
const V8_OF_NODE_20 = '11.';
if (process.versions.v8.startsWith(V8_OF_NODE_20)) setFlagsFromString('--interrupt-budget=20000');
