/**
 * Bugs planted for the simulation of leases over ranges, each in one place. For each bug, planted-bugs.long.test.ts
 * runs its `seed`, which breaks one of its `properties` (truth.ts).
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

const STATE = 'packages/dataserver/src/state/';

export const LEASE_BUGS: readonly PlantedBug[] = [
  {
    name: 'registrations-outlive-the-end-of-their-lease',
    rule: 'the end of a lease voids the registrations of it that are under way (design §9 ▸)',
    file: 'packages/dataserver/src/range/leases/lease-manager.ts',
    find: 'endTold(id: bigint): void {\n    this.#registrar.void(id);',
    replace: 'endTold(_id: bigint): void {',
    seed: 7,
    properties: ['L2', 'L3'],
  },
  {
    name: 'reference-that-the-home-does-not-know',
    rule: 'a range registers its span at the home before it has anything of the lease (design §9 ▸)',
    file: 'packages/dataserver/src/state/leases/lease-commands.ts',
    find: '  range.leases.addSpan(id, span);\n',
    replace: '',
    seed: 1,
    properties: ['L2', 'L3'],
  },
  {
    name: 'split-forgets-to-tell-the-home',
    rule: 'what a split parts from its lease is one of its spans from that entry on (lease-split.ts LS1)',
    file: 'packages/dataserver/src/state/leases/lease-split.ts',
    find: '    leases.addSpan(id, behind);\n',
    replace: '',
    seed: 1,
    properties: ['L2', 'L3'],
  },
  {
    name: 'references-are-not-cut',
    rule: 'splits cut references (design §9 ▸)',
    file: 'packages/dataserver/src/state/leases/lease-split.ts',
    find: '    references.uncover(id, incarnation, behind);\n',
    replace: '',
    seed: 1,
    properties: ['L0', 'L2', 'L3'],
  },
  {
    name: 'reference-of-the-whole-range-after-a-merge',
    rule: 'merges keep the pieces of references separate (design §9 ▸)',
    file: 'packages/dataserver/src/state/leases/lease-references.ts',
    find: 'return hasKey(reference.spans, routingKey);',
    replace: 'return reference.spans.length > 0 || hasKey(reference.spans, routingKey);',
    seed: 1,
    properties: ['L2', 'L3'],
  },
  {
    name: 'end-leaves-what-is-covered',
    rule: 'nothing more comes to belong to a lease where its end was told (lease-commands.ts LC2)',
    file: 'packages/dataserver/src/state/leases/lease-commands.ts',
    find: '  references.uncover(id, incarnation, covered);\n',
    replace: '',
    seed: 1,
    properties: ['L2', 'L3'],
  },
  {
    name: 'answer-settles-more-than-it-names',
    rule: 'a range answers with the span that it covered, and the home subtracts that (design §9 ▸)',
    file: 'packages/dataserver/src/range/leases/lease-endings.ts',
    find: 'span: result.covered } as const; // LE2',
    replace: 'span } as const; // LE2',
    seed: 1,
    properties: ['L2', 'L3'],
  },
  {
    name: 'ending-lease-is-granted-again',
    rule: 'no two incarnations of a lease are about at a time (leases.ts S4)',
    file: `${STATE}admission.ts`,
    find: "item.command.type === 'leaseGrant' && ",
    replace: "item.command.type === 'noop' && item.command.type === 'leaseGrant' && ",
    seed: 19,
    properties: ['L0', 'L1', 'L2', 'L3'],
  },
  {
    name: 'revocation-answered-before-it-is-over',
    rule: 'a revocation is answered when nothing is left of the lease (docs/decisions/0025)',
    file: 'packages/dataserver/src/range/leases/lease-endings.ts',
    find: '    if (this.#deps.leases.ending(id) === undefined) return done(undefined);\n',
    replace: '    return done(undefined);\n',
    seed: 2,
    properties: ['L2'],
  },
  {
    name: 'lost-leases-are-not-looked-for',
    rule: 'what a range has of a lease that its home lost is taken away (lease-audit.ts LA2)',
    file: 'packages/dataserver/src/range/leases/lease-audit.ts',
    find: 'return result.lease.incarnation !== incarnation;',
    replace: 'return false;',
    seed: 3,
    properties: ['L3'],
  },
  {
    name: 'no-answer-is-taken-for-the-end-of-a-lease',
    rule: 'an audit that has no answer says nothing (lease-audit.ts LA3)',
    file: 'packages/dataserver/src/range/leases/lease-audit.ts',
    find: "if (error !== undefined || result?.type !== 'leaseTimeToLive') return false;",
    replace: "if (error !== undefined || result?.type !== 'leaseTimeToLive') return true;",
    seed: 36,
    properties: ['L1'],
  },
];
