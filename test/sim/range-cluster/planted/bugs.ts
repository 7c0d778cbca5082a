/**
 * Bugs planted for the simulation of ranges that merge, each in one place. planted-bugs.long.test.ts runs the `seed` of
 * each. One of the bug's `properties` must occur in what the run finds, or in the error at which the product stops.
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

const MERGE = 'packages/dataserver/src/state/reshape/merge.ts';
const MERGED = 'packages/dataserver/src/replicas/merged-replicas.ts';

export const MERGE_BUGS: readonly PlantedBug[] = [
  {
    name: 'merge-without-the-word-of-all-nodes',
    rule: 'a merge is decided when every replica has applied the seal (design §12)',
    file: 'packages/dataserver/src/range/reshape/merge-driver.ts',
    find: 'await this.#settled(sealed.descriptor, sealed.index, untilMs);',
    replace: '',
    seed: 4,
    properties: ['MR3', 'MG2'],
  },
  {
    name: 'sealed-range-applies-commands',
    rule: 'from its seal on a source changes nothing (design §12)',
    file: 'packages/dataserver/src/state/admission.ts',
    find: 'merging.seal !== undefined && !passesSeal(item.command)',
    replace: 'merging.seal !== undefined && item.deadlineMs < 0',
    seed: 2,
    properties: ['MG1', 'was acknowledged', 'saw', 'replicas'],
  },
  {
    name: 'last-revision-of-the-source-forgotten',
    rule: 'the last revision of a union is the later one (design §8)',
    file: MERGE,
    find: 'state.revision = Math.max(state.revision, source.revision);',
    replace: '',
    seed: 1,
    properties: ['after', 'saw', 'watch'],
  },
  {
    name: 'keys-of-the-target-cleared-with-the-source',
    rule: 'the rows of a merged range are the target’s (range/reshape/merges.ts MR5)',
    file: MERGED,
    find: 'running.replica.state.descriptor = withoutKeys(running.replica.state.descriptor);',
    replace: '',
    seed: 1,
    properties: ['a span is being rebuilt', 'saw', 'happened', 'replicas'],
  },
  {
    name: 'recent-events-without-those-of-the-source',
    rule: 'a watch misses nothing over a merge (design §10)',
    file: 'packages/dataserver/src/range/reshape/merges.ts',
    find: 'hub.reset(); // the hub does not know the history of the keys that came',
    replace: '',
    seed: 2,
    properties: ['watch'],
  },
  {
    name: 'read-without-the-newest-revision',
    rule: 'a read over several ranges asks the master for its newest revision first (routed-query.ts RQ1)',
    file: 'packages/gateway/src/routing/calls/routed-query.ts',
    find: "return range?.revisionSource === 'master';",
    replace: 'return range === undefined;',
    seed: 1,
    properties: ['saw'],
  },
  {
    name: 'read-beside-a-write-under-way',
    rule: 'an answer shows all that its range writes at or below the revision it carries (queries.ts Q6)',
    file: 'packages/dataserver/src/range/requests/queries.ts',
    find: 'this.#deps.closing.whenUsedUp(notBefore, (error) => {',
    replace:
      '((_revision: number, then: (error?: ServiceError) => void) => (then(), () => {}))(notBefore, (error) => {',
    seed: 1,
    properties: ['where there was'],
  },
];
