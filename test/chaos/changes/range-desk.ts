/**
 * Changes the cluster's ranges as an operator does: through the admin API, one change per range at a time. Each change
 * is recorded.
 */
import { ServiceError, type Span } from '@remora/base';
import type { admin } from '@remora/protocol/remora';
import { AdminClient, type RangeChangeRequest } from 'remora/admin';
import { pause } from '../../e2e/eventually.ts';
import type { Journal } from '../journal/journal.ts';
import { type Access, connectOptions } from '../users/access.ts';

export const CHANGES = ['split', 'merge', 'move', 'transfer'] as const;
export type ChangeKind = (typeof CHANGES)[number];

/** Refers to a range as it was last seen. */
export interface WantedChange {
  readonly kind: ChangeKind;
  readonly range: admin.Range;
  /** The range that a merge ends. */
  readonly other?: admin.Range;
  readonly how: RangeChangeRequest | { readonly $case: 'transfer'; readonly value: { readonly toNode: bigint } };
}

/** The recorded keys of a change. They are hexadecimal, because routing keys are not text. */
export interface RecordedChange {
  readonly change: ChangeKind;
  readonly spans: readonly (readonly [start: string, end: string])[];
}

export interface RangeDeskOptions {
  readonly endpoints: readonly string[];
  readonly journal: Journal;
  readonly access?: Access | undefined;
}

const CALL_TIMEOUT_MS = 6_000;
const CONNECT_TIMEOUT_MS = 1_000;
const PAGE = 200;
const LOOK_MS = 40;
/** For one recently ended range: far more than it can have. */
const ENDED_MAX = 50;
/** Afterwards the change is not waited for any more, because the round has to be judged. */
const DONE_WITHIN_MS = 20_000;

export class RangeDesk {
  readonly #admin: AdminClient;
  readonly #journal: Journal;
  readonly #busy = new Set<number>();
  readonly #done = new Map<ChangeKind, number>();
  /** Changes that did not complete, by kind and reason. */
  readonly #failed = new Map<string, number>();

  constructor({ endpoints, journal, access }: RangeDeskOptions) {
    this.#admin = new AdminClient({
      ...{ endpoints, timeoutMs: CALL_TIMEOUT_MS, connectTimeoutMs: CONNECT_TIMEOUT_MS },
      ...connectOptions(access),
    });
    this.#journal = journal;
  }

  /** The clients' current round. */
  get round(): number {
    return this.#journal.round;
  }

  /** The number of completed changes of each kind. */
  get done(): Readonly<Record<ChangeKind, number>> {
    const of = (kind: ChangeKind): number => this.#done.get(kind) ?? 0;
    return { split: of('split'), merge: of('merge'), move: of('move'), transfer: of('transfer') };
  }

  get failed(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#failed);
  }

  /** All ranges in key order, as the master knows them. @throws ServiceError */
  ranges(): Promise<readonly admin.Range[]> {
    return this.#admin.ranges({ pageSize: PAGE }).toArray();
  }

  /** Ids of the nodes that store data. @throws ServiceError */
  async stores(): Promise<readonly number[]> {
    const { nodes } = await this.#admin.nodes();
    return nodes.flatMap(({ id, roles }) => (roles.includes('data') ? [id] : []));
  }

  /** Whether this desk is not changing the range at the moment. */
  isFree({ id }: admin.Range): boolean {
    return !this.#busy.has(id);
  }

  /** Whether the change was made. A failure is no fault: ranges change, and so do leaders. */
  async carryOut(wanted: WantedChange): Promise<boolean> {
    const { kind, range, other } = wanted;
    const parts = other === undefined ? [range] : [range, other];
    const recorded: RecordedChange = { change: kind, spans: parts.map(hexOf) };
    for (const { id } of parts) this.#busy.add(id);
    const operation = this.#journal.begin('changes', this.#journal.round, recorded);
    try {
      await this.#do(wanted);
      operation.end('done');
      this.#done.set(kind, (this.#done.get(kind) ?? 0) + 1);
      return true;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      // It may still happen.
      operation.end('unknown', { code: error.code });
      const why = `${kind}: ${error.message}`;
      this.#failed.set(why, (this.#failed.get(why) ?? 0) + 1);
      return false;
    } finally {
      for (const { id } of parts) this.#busy.delete(id);
    }
  }

  close(): void {
    this.#admin.close();
  }

  async #do({ range, how }: WantedChange): Promise<void> {
    if (how.$case === 'transfer') {
      await this.#admin.transferLeader(range.id, Number(how.value.toNode));
      return;
    }
    const begun = await this.#admin.changeRange(range, how);
    const endMs = performance.now() + DONE_WITHIN_MS;
    while (performance.now() < endMs) {
      await pause(LOOK_MS);
      const ended = await this.#ended(begun);
      if (ended === undefined) continue;
      if (ended.status === 'success') return;
      throw new ServiceError('UNAVAILABLE', ended.outcome);
    }
    throw new ServiceError('DEADLINE_EXCEEDED', `not done in ${DONE_WITHIN_MS} ms`);
  }

  /** Undefined: it is in progress. @throws ServiceError if no node knows it any more. */
  async #ended({ id, rangeId }: admin.Operator): Promise<admin.Operator | undefined> {
    const find = async (ended: boolean) =>
      (await this.#admin.operators({ ended, rangeId, limit: ENDED_MAX })).find((operator) => operator.id === id);
    if ((await find(false)) !== undefined) return undefined;
    const found = await find(true);
    if (found === undefined) throw new ServiceError('UNAVAILABLE', 'the masters have a new leader, which plans anew');
    return found;
  }
}

function hexOf({ start, end }: Span): readonly [string, string] {
  return [Buffer.from(start).toString('hex'), Buffer.from(end).toString('hex')];
}
