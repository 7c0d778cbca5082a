/** One life of the node of a test cluster. */
import type { Clock, Logger, SeededRandom } from '@remora/base';
import { sleep } from '@remora/base';
import type { MemoryLinkPair } from '@remora/protocol/testing';
import { RemoraError } from 'remora';
import { type AssembledNode, assembleNode } from '../node/assemble.ts';
import type { EntryDeps, NodeEntry } from '../node/platform.ts';
import type { NodeOptions } from '../node-options.ts';
import { MemoryEntry, type OnSession } from './memory-entry.ts';
import { type MemoryMachine, memoryPlatform } from './memory-platform.ts';

export interface MemoryNodeDeps {
  readonly options: NodeOptions;
  readonly machine: MemoryMachine;
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly logger: Logger;
  /** Opens the ports of a node that listens. */
  readonly openPorts: ((deps: EntryDeps) => NodeEntry) | undefined;
}

/** How often a start looks whether the node serves. */
const READY_LOOK_MS = 5;

type Range =
  ReturnType<NonNullable<NonNullable<AssembledNode['roles']>['store']>['replicas']> extends Iterable<infer R>
    ? R
    : never;

export class MemoryNode {
  readonly #node: AssembledNode;
  readonly #entry: MemoryEntry;

  private constructor(node: AssembledNode, entry: MemoryEntry) {
    this.#node = node;
    this.#entry = entry;
  }

  /** Resolves when the node serves and is well. */
  static async start({ options, openPorts, ...deps }: MemoryNodeDeps): Promise<MemoryNode> {
    let entry: MemoryEntry | undefined;
    let entryDeps: EntryDeps | undefined;
    const openEntry = (given: EntryDeps): NodeEntry => {
      entryDeps = given;
      entry = new MemoryEntry(given);
      return openPorts === undefined ? entry : both(entry, openPorts(given));
    };
    const node = await assembleNode(options, memoryPlatform({ ...deps, openEntry }), new AbortController().signal);
    if (entry === undefined || entryDeps === undefined) throw new Error('a node that runs has an entry');
    const started = new MemoryNode(node, entry);
    // A node that has just begun may be listed as silent until it has reported its first range.
    const isWell = (): boolean => entryDeps?.health.readiness().conditions.length === 0;
    while (!started.#serves || !isWell()) await sleep(deps.clock, READY_LOOK_MS);
    return started;
  }

  /** Rejects when the node had to stop by itself. */
  get failed(): Promise<never> {
    return this.#node.failed;
  }

  open(onSession: OnSession): MemoryLinkPair | undefined {
    return this.#entry.open(onSession);
  }

  isAlive(lease: bigint): boolean {
    return this.#rangeOf(lease) !== undefined;
  }

  /** Proposes the end that the leader proposes when a lease's time is over (lease-keeper.ts LK2). */
  async expire(lease: bigint): Promise<void> {
    const range = this.#rangeOf(lease);
    const found = range?.state.leases.get(lease);
    if (range === undefined || found === undefined) throw notFound(lease);
    const { incarnation } = found;
    const command = { type: 'leaseExpire', id: lease, incarnation, term: range.group.term } as const;
    const { rangeId, state } = range;
    const request = {
      ...{ rangeId, epoch: state.descriptor.epoch, requestId: '', deadlineMs: range.timeMs + EXPIRE_MS },
      ...{ body: { kind: 'command', command } as const, authRevision: 0 },
    };
    await new Promise<void>((resolve, reject) => {
      range.requests.execute(
        request,
        () => {},
        (error) => (error === undefined ? resolve() : reject(new RemoraError(error.code, error.message))),
      );
    });
  }

  stop(): Promise<void> {
    return this.#node.stop();
  }

  get #ranges(): readonly Range[] {
    return [...(this.#node.roles?.store?.replicas() ?? [])];
  }

  get #serves(): boolean {
    return this.#ranges.some(({ serving }) => serving);
  }

  #rangeOf(lease: bigint): Range | undefined {
    return this.#ranges.find(({ state, serving }) => serving && state.leases.get(lease) !== undefined);
  }
}

/** Longer than any range of a test needs. */
const EXPIRE_MS = 60_000;

function notFound(lease: bigint): RemoraError {
  return new RemoraError('LEASE_NOT_FOUND', `session ${lease.toString(16)} does not exist or has ended`);
}

function both(one: NodeEntry, other: NodeEntry): NodeEntry {
  return {
    async start() {
      await other.start();
      await one.start();
    },
    async stop() {
      await Promise.all([one.stop(), other.stop()]);
    },
  };
}
