import type { HistoryRecord } from './history.ts';
import { countUnseen } from './lock-gaps.ts';
import { isRefusal, type Model, type Narrowed } from './models.ts';

export interface LockModelState {
  /** Version undefined: granted to an acquire whose answer was lost. */
  readonly holder: { readonly client: string | number; readonly version: number | undefined } | undefined;
  /** The highest version that is known to have been granted. */
  readonly last: number;
}

/**
 * An exclusive lock: `acquire`, `release`, `check`. A grant needs a lock that is free and a version above all before.
 * A lock that a server may have freed by itself (a session that ended) is a `release` of unknown outcome that begins
 * when that became possible.
 */
export const lockModel: Model<LockModelState> = {
  name: 'lock',
  initial: { holder: undefined, last: 0 },
  step(state, op) {
    switch (op.op) {
      case 'acquire':
        return acquire(state, op);
      case 'release':
        return release(state, op);
      case 'check':
        return check(state, op);
      default:
        return undefined;
    }
  },
  // A check that holds may settle a version that was unknown.
  observes: (op) => isRefusal(op) || (op.op === 'check' && op.out !== true),
  fingerprint: ({ holder, last }) => JSON.stringify([holder?.client ?? null, holder?.version ?? null, last]),
  describe({ holder, last }) {
    if (holder === undefined) return `free, last version ${last}`;
    return `held by client ${holder.client}, version ${holder.version ?? `unknown, above ${last}`}`;
  },
  narrow(ops) {
    const counted = countUnseen(ops);
    if (counted === undefined) return { ops: withoutUnseenGrants(ops), step: lockModel.step };
    return { ops: counted.ops, step: stepInOrder(counted.versions) };
  },
};

/** A grant that passes over an older version leads nowhere: that one must have a place as well, and has none behind it. */
function stepInOrder(versions: readonly number[]): Narrowed<LockModelState>['step'] {
  const before = new Map<unknown, number>(versions.map((version, i) => [version, versions[i - 1] ?? 0]));
  return (state, op) => {
    const isGrant = op.op === 'acquire' && op.ok;
    return isGrant && before.get(op.out) !== state.last ? undefined : lockModel.step(state, op);
  };
}

/**
 * A grant of unknown outcome matters by what it hides, a refusal of others, and by what shows it: a release or a check
 * that no known grant explains. Where there is neither, it may as well not have been; and a release of unknown outcome
 * matters only where there is a grant for it.
 */
function withoutUnseenGrants(ops: readonly HistoryRecord[]): readonly HistoryRecord[] {
  const versions = new Set<unknown>();
  const clients = new Set<string | number>();
  for (const { op, ok, t1, out, c } of ops) {
    if (op !== 'acquire' || t1 === null || !ok) continue;
    versions.add(out);
    clients.add(c);
  }
  const needsUnseen = (op: HistoryRecord): boolean => {
    if (op.t1 === null) return false;
    if (op.op === 'acquire') return !op.ok;
    if (op.op === 'check') return op.out === true && !versions.has(op.v);
    return op.ok && (typeof op.v === 'number' ? !versions.has(op.v) : true);
  };
  if (ops.some(needsUnseen)) return ops;
  return ops.filter((op) => {
    if (op.t1 !== null) return true;
    if (op.op !== 'release') return false;
    return typeof op.v === 'number' ? versions.has(op.v) : clients.has(op.c);
  });
}

function acquire(state: LockModelState, op: HistoryRecord): LockModelState | undefined {
  if (isRefusal(op)) return state.holder === undefined ? undefined : state; // Busy.
  if (state.holder !== undefined) return op.t1 === null ? state : undefined;
  if (op.t1 === null) return { holder: { client: op.c, version: undefined }, last: state.last };
  const version = op.out;
  if (typeof version !== 'number' || version <= state.last) return undefined;
  return { holder: { client: op.c, version }, last: version };
}

function release(state: LockModelState, op: HistoryRecord): LockModelState | undefined {
  const held = releases(state, op);
  if (isRefusal(op)) return state.holder?.version !== undefined && held ? undefined : state;
  if (held) return { holder: undefined, last: typeof op.v === 'number' ? Math.max(op.v, state.last) : state.last };
  return op.t1 === null ? state : undefined;
}

/** Whether a release means the present grant; for one whose version is unknown: whether it may. */
function releases({ holder, last }: LockModelState, op: HistoryRecord): boolean {
  if (holder === undefined) return false;
  if (typeof op.v !== 'number') return holder.client === op.c;
  return holder.version === undefined ? op.v > last : holder.version === op.v;
}

function check(state: LockModelState, op: HistoryRecord): LockModelState | undefined {
  const { holder, last } = state;
  if (op.t1 === null) return state;
  const version = typeof op.v === 'number' ? op.v : -1;
  if (holder === undefined) return op.out === true ? undefined : state;
  if (holder.version !== undefined) return (holder.version === version) === (op.out === true) ? state : undefined;
  if (op.out !== true) return state;
  return version > last ? { holder: { client: holder.client, version }, last: version } : undefined;
}
