/**
 * Bugs planted for the simulation of whole clusters, over all layers: one place each, and each a bug that systems like
 * this one have had. planted-bugs.test.ts runs the `seed` of each, which breaks one of its `properties`. When runs have
 * changed, `pnpm planted --stale --write` looks for the seeds anew.
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

export const CLUSTER_BUGS: readonly PlantedBug[] = [
  {
    layer: 'snapshot',
    name: 'leases-kept-over-install',
    rule: 'a replica that installs a snapshot forgets the leases it knew',
    file: 'packages/dataserver/src/state/leases.ts',
    find: '  load(): void {\n    this.#byId.clear();',
    replace: '  load(): void {',
    seed: 4,
    properties: ['replicas agree', 'liveness', 'state machine safety'],
  },
  {
    layer: 'transaction',
    name: 'read-answered-by-an-unconfirmed-leader',
    rule: 'a read waits for a ReadIndex round (queries.ts Q1)',
    file: 'packages/dataserver/src/range/queries.ts',
    find: "(query.type === 'range' || query.type === 'readTxn') && query.serializable)",
    replace: "(query.type === 'range' || query.type === 'readTxn'))",
    seed: 2,
    properties: ['revisions in real-time order', 'linearizable registers'],
  },
  {
    layer: 'lease',
    name: 'keep-alive-without-leadership',
    rule: 'a keep-alive is acknowledged only under leadership confirmed after it came (design §9)',
    file: 'packages/dataserver/src/range/queries.ts',
    find: "if (query.type === 'status' ||",
    replace: "if (query.type === 'status' || query.type === 'leaseKeepAlive' ||",
    seed: 1,
    properties: ['lease: not early'],
  },
  {
    layer: 'client',
    name: 'client-forgets-unknown',
    rule: 'a command that may have been applied ends as unknown (requester.ts R2)',
    file: 'packages/client/src/requester.ts',
    find: "    if (error.code === 'UNKNOWN_OUTCOME') this.#maybeApplied = true;\n",
    replace: '',
    seed: 1,
    properties: ['linearizable registers'],
  },
];
