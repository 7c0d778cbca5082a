import { assert } from '@remora/base';
import type { LockId } from '@remora/lock';
import {
  type Command,
  type Compare,
  type DeleteOp,
  kvRoutingKey,
  type PartOp,
  prepareRequestId,
  type RangeDescriptor,
  type TxnCommandResult,
  type TxnDecide,
  type TxnPrepare,
  type TxnResolution,
} from '@remora/protocol';
import { boundsOf } from '../../src/state/bounds.ts';
import type { Outcome } from '../../src/state/outcomes/outcome-codec.ts';
import type { MemoryEngine } from '../../src/testing/memory-engine.ts';
import { DESCRIPTOR, StateBed } from './state-bed.ts';

/** Of plain keys up to this one, and from it on. */
export const BORDER = kvRoutingKey(Buffer.from('m'));

/** Two ranges that share everything between them, numbered by the master. */
export function neighbours(engine?: MemoryEngine): readonly [StateBed, StateBed] {
  const whole: RangeDescriptor = { ...DESCRIPTOR, revisionSource: 'master', epoch: { confVersion: 1, version: 2 } };
  const left = new StateBed({ ...(engine && { engine }), descriptor: { ...whole, end: BORDER } });
  const right = new StateBed({ engine: left.engine, descriptor: { ...whole, rangeId: 3, start: BORDER } });
  return [left, right];
}

/**
 * A prepare of part 0 or another one; its operations are of branch 0 and numbered as they come, unless they say else.
 */
export function prepare(
  txnId: string,
  part: number,
  ops: readonly (PartOp | PartOp['op'])[],
  more: Partial<TxnPrepare> = {},
): TxnPrepare {
  return {
    ...{ type: 'txnPrepare', txnId, part, requestId: '', expiresMs: 10_000, compares: [] },
    primaryKey: kvRoutingKey(Buffer.from('a')),
    ops: ops.map((op, i) => ('op' in op ? op : { number: 10 * part + i, branch: 0, op })),
    ...more,
  };
}

export function decide(txnId: string, decision: TxnDecide['decision'], requestId = ''): TxnDecide {
  return { type: 'txnDecide', txnId, primaryKey: kvRoutingKey(Buffer.from('a')), requestId, decision };
}

export function commitAt(revision: number, branches: readonly number[] = [0]) {
  return { type: 'commit', revision, branches, others: [] } as const;
}

/** Of part 1, in whatever range it is asked of. */
export function resolve(txnId: string, resolution: TxnResolution, bed: StateBed, requestId = ''): Command {
  const { start, end } = boundsOf(bed.state.descriptor).routed;
  return { type: 'txnResolve', txnId, part: 1, span: { start, end }, requestId, resolution };
}

export function lockOf(name: string): LockId {
  return { namespace: 'default', name: Buffer.from(name) };
}

export function equals(key: string, value: string): Compare {
  return { key: Buffer.from(key), result: 'equal', target: { of: 'value', value: Buffer.from(value) } };
}

/** Under its own request id, as coordinators send it. */
export function send(bed: StateBed, command: TxnPrepare, deadlineMs = 20_000): Promise<Outcome> {
  return bed.run(command, { requestId: prepareRequestId(command.txnId, command.part), deadlineMs });
}

export async function prepared(bed: StateBed, command: TxnPrepare) {
  const outcome = await send(bed, command);
  assert(
    outcome.ok && outcome.result.type === 'txnPrepare',
    `${command.txnId} is answered: ${JSON.stringify(outcome)}`,
  );
  return outcome.result;
}

/** What a command of a transaction must come to. */
export async function txnResult<T extends TxnCommandResult['type']>(bed: StateBed, command: Command, type: T) {
  const result = await bed.ok(command);
  assert(result.type === type, `the result is of type ${type}`);
  return result as Extract<TxnCommandResult, { type: T }>;
}

export function del(key: string, end?: string, prevKv = false): DeleteOp {
  return { type: 'delete', key: Buffer.from(key), prevKv, ...(end === undefined ? {} : { end: Buffer.from(end) }) };
}
