/**
 * Sets V8 flags for this process (docs/decisions/0066-v8-without-pretenuring.md). Import it before everything else:
 * until then V8 compiles and allocates with its defaults.
 */
import { setFlagsFromString } from 'node:v8';

// V8 moves an allocation site to the old generation if most of its objects survived a collection. A node with many
// requests in flight looks like that for a moment, and V8 does not revert it: from then on completed requests keep
// alive what they refer to, and the leader takes 1.5 times the CPU time for each.
setFlagsFromString('--no-allocation-site-pretenuring');

// How much a function must run before it is optimized; the default is 66 KiB of bytecode. Most of a node's code runs a
// few hundred times a second, and would take minutes to reach the default. Later versions have an intermediate
// compiler, and no such flag.
const V8_OF_NODE_20 = '11.';
if (process.versions.v8.startsWith(V8_OF_NODE_20)) setFlagsFromString('--interrupt-budget=20000');
