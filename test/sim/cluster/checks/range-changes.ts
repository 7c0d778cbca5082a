/**
 * Checks descriptors, over all nodes and masters and all the time; and counts which changes of ranges happened while
 * something else was in progress.
 *
 * D1. A key has one owner at each version: of two overlapping ranges one is older. (A split raises the version of both
 *     halves above that of the whole, a merge above those of both parts.)
 * D2. The ranges that the masters' leader knows have neither holes nor overlaps.
 * D3. Something is *amid* a change if it existed when the range was last examined before the change, and exists
 *     afterwards: the change moved it along. For a watch it is enough that it was open.
 */

import { binaryString, compareBytes, type Span } from '@remora/base';
import { coverageFaults } from '@remora/master';
import { LOCK_SPACE, type RangeDescriptor } from '@remora/protocol';
import type { NodeRoles } from '../../../../packages/cli/src/node/assemble.ts';
import { spansOverlap } from '../../../../packages/dataserver/src/state/bounds.ts';
import { lockStart } from '../../../../packages/lock/src/records/keys.ts';
import { Violation } from '../../common/violation.ts';
import type { SimNode } from '../node.ts';
import type { World } from '../world.ts';

const LOOK_MS = 50;
/** What follows the lock's own bytes in the key of a waiter's row (packages/lock/src/records/keys.ts). */
const QUEUE = 0x01;

const CHANGES = ['split', 'merge', 'move', 'transfer'] as const;
type ChangeKind = (typeof CHANGES)[number];
const LOADS = ['waiters', 'watches', 'leases', 'transactions'] as const;
type Load = (typeof LOADS)[number];

/** A range according to its leader. */
interface Seen {
  readonly descriptor: RangeDescriptor;
  readonly leaderNode: number;
  readonly term: number;
  readonly loads: Readonly<Record<Load, ReadonlySet<string>>>;
}

export class RangeChanges {
  readonly #world: World;
  readonly #history = new DescriptorHistory();
  #seen: ReadonlyMap<number, Seen> = new Map();
  /** Ranges that were cut, in their earlier form, until the other part has a leader; by the start of that part. */
  readonly #cut = new Map<string, Seen>();
  readonly #counts = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  run(): void {
    this.#world.loop.setTimer(LOOK_MS, () => {
      try {
        this.#look();
      } catch (error) {
        this.#world.fail(error);
      }
      if (!this.#world.over) this.run();
    });
  }

  /** How often each kind of change happened, and amid what. */
  figures(): Readonly<Record<string, number>> {
    return Object.fromEntries(FIGURES.map((name) => [name, this.#counts.get(name) ?? 0]));
  }

  #look(): void {
    const { nodes, placement } = this.#world;
    const { master, ranges } = placement;
    for (const descriptor of ranges) this.#history.see(descriptor);
    if (master?.leading === true && ranges.length > 0) covered(ranges); // D2
    const leaders = new Map<number, Seen>();
    for (const node of nodes) {
      for (const { state, serving, group } of node.roles?.store?.replicas() ?? []) {
        this.#history.see(state.descriptor);
        const known = leaders.get(state.rangeId);
        if (!serving || node.roles === undefined || (known?.term ?? 0) > group.term) continue;
        leaders.set(state.rangeId, seen(node, node.roles, state.rangeId));
      }
    }
    this.#compare(leaders);
  }

  /** A range without a leader counts as it was with one; a range that is part of another has ended. */
  #compare(now: ReadonlyMap<number, Seen>): void {
    const next = new Map(now);
    for (const [rangeId, before] of this.#seen) {
      const after = now.get(rangeId);
      if (after !== undefined) this.#changed(before, after);
      else if (!this.#merged(before, now)) next.set(rangeId, before);
    }
    for (const [rangeId, after] of now) if (!this.#seen.has(rangeId)) this.#split(after, now);
    this.#seen = next;
  }

  #changed(before: Seen, after: Seen): void {
    if (isCut(before.descriptor, after.descriptor)) this.#cut.set(binaryString(after.descriptor.end), before);
    const moved = !sameNodes(before.descriptor, after.descriptor);
    if (moved) this.#count('move', [before], [after]);
    if (before.leaderNode !== after.leaderNode) this.#count('transfer', [before], [after]);
  }

  #merged(before: Seen, now: ReadonlyMap<number, Seen>): boolean {
    const into = [...now.values()].find(({ descriptor }) => isOlder(before.descriptor, descriptor));
    if (into === undefined) return false;
    const target = this.#seen.get(into.descriptor.rangeId);
    this.#count('merge', target === undefined ? [before] : [before, target], [into]);
    return true;
  }

  #split(child: Seen, now: ReadonlyMap<number, Seen>): void {
    const start = binaryString(child.descriptor.start);
    const parent = this.#cut.get(start);
    if (parent === undefined) return;
    this.#cut.delete(start);
    this.#count('split', [parent], [child, now.get(parent.descriptor.rangeId) ?? child]);
  }

  /** D3. */
  #count(kind: ChangeKind, before: readonly Seen[], after: readonly Seen[]): void {
    this.#add(nameOf(kind));
    for (const load of LOADS) {
      const left = new Set(after.flatMap(({ loads }) => [...loads[load]]));
      const had = before.flatMap(({ loads }) => [...loads[load]]);
      if (had.some((one) => left.has(one) || load === 'watches')) this.#add(nameOf(kind, load));
    }
  }

  #add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }
}

function nameOf(kind: ChangeKind, load?: Load): string {
  return load === undefined ? `changes: ${kind}` : `${load} amid a ${kind}`;
}

/** In a long run, none may be 0. */
export const FIGURES: readonly string[] = CHANGES.flatMap((kind) => [
  nameOf(kind),
  ...LOADS.map((load) => nameOf(kind, load)),
]);

function covered(ranges: readonly RangeDescriptor[]): void {
  const [fault] = coverageFaults(ranges);
  if (fault === undefined) return;
  throw new Violation(
    'keys have one range',
    `the masters know of a ${fault.type} at ranges ${fault.rangeIds.join(', ')}`,
  );
}

function sameNodes(a: RangeDescriptor, b: RangeDescriptor): boolean {
  const nodesOf = ({ replicas }: RangeDescriptor) =>
    replicas.flatMap(({ nodeId, type }) => (type === 'voter' ? [nodeId] : [])).sort((x, y) => x - y);
  return nodesOf(a).join() === nodesOf(b).join();
}

/** Whether a range has lost keys at its end. */
function isCut(before: RangeDescriptor, after: RangeDescriptor): boolean {
  if (after.end.length === 0) return false;
  return before.end.length === 0 || compareBytes(after.end, before.end) < 0;
}

/** Whether the first one existed before the other one took keys of it. */
function isOlder(a: RangeDescriptor, b: RangeDescriptor): boolean {
  return a.rangeId !== b.rangeId && a.epoch.version < b.epoch.version && spansOverlap(a, b);
}

function seen({ id }: SimNode, { store, engine }: NodeRoles, rangeId: number): Seen {
  const replica = [...(store?.replicas() ?? [])].find((one) => one.rangeId === rangeId);
  if (replica === undefined) throw new Error(`node ${id} has range ${rangeId}`);
  const { state, group } = replica;
  const { transactions, leases, descriptor, bounds } = state;
  return {
    descriptor,
    leaderNode: id,
    term: group.term,
    loads: {
      waiters: new Set(waitersIn(engine, bounds.routed)),
      watches: new Set(replica.inFlight().watches > 0 ? ['watch'] : []),
      leases: new Set([...leases.all()].map((lease) => String(lease.id))),
      transactions: new Set([...transactions.parts].map(({ txnId }) => txnId)),
    },
  };
}

function waitersIn(engine: NodeRoles['engine'], routed: Span): readonly string[] {
  if ((routed.start[0] ?? 0) > LOCK_SPACE) return [];
  const start = routed.start[0] === LOCK_SPACE ? routed.start : Buffer.from([LOCK_SPACE]);
  const end = routed.end[0] === LOCK_SPACE ? routed.end : Buffer.from([LOCK_SPACE + 1]);
  if (routed.end.length > 0 && (routed.end[0] ?? 0) < LOCK_SPACE) return [];
  const keys = engine.scanResident({ start, end }).map(({ key }) => key);
  return keys.filter((key) => key[lockStart(key)?.length ?? 0] === QUEUE).map(binaryString);
}

/** All descriptors that there ever were. */
export class DescriptorHistory {
  /** By version, then by range. */
  readonly #byVersion = new Map<number, Map<number, RangeDescriptor>>();

  /** D1. @throws Violation */
  see(descriptor: RangeDescriptor): void {
    const { rangeId, epoch } = descriptor;
    let same = this.#byVersion.get(epoch.version);
    if (same === undefined) {
      same = new Map();
      this.#byVersion.set(epoch.version, same);
    }
    const known = same.get(rangeId);
    if (known === descriptor) return;
    same.set(rangeId, descriptor);
    if (known !== undefined && samePlace(known, descriptor)) return;
    for (const other of same.values()) {
      if (other === descriptor || (other.rangeId !== rangeId && !spansOverlap(other, descriptor))) continue;
      throw new Violation('keys have one range', `${told(descriptor)} and ${told(other)} are both of this version`);
    }
    if (known !== undefined) {
      throw new Violation('keys have one range', `${told(known)} is ${told(descriptor)} at the same version`);
    }
  }
}

function samePlace(a: Span, b: Span): boolean {
  return Buffer.compare(a.start, b.start) === 0 && Buffer.compare(a.end, b.end) === 0;
}

function told({ rangeId, start, end, epoch }: RangeDescriptor): string {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
  return `range ${rangeId} [${hex(start)}, ${hex(end)}) of version ${epoch.version}`;
}
