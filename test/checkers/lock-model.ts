import type { HistoryRecord } from './history.ts';
import { countUnseen } from './lock-gaps.ts';
import { isRefusal, type Model, type Narrowed } from './models.ts';

export interface LockModelState {
  /** An undefined version: granted to an acquire whose answer was lost. */
  readonly holder: { readonly client: string | number; readonly version: number | undefined } | undefined;
  /** The highest version that was certainly granted. */
  readonly last: number;
}

/**
 * An exclusive lock: `acquire`, `release`, `check`, `force`. A grant needs a free lock, and a version above all earlier
 * ones. If a server may have freed the lock by itself (because a session ended), the history has a `release` of unknown
 * outcome that begins when that became possible.
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
      case 'force':
        return force(state, op);
      default:
        return undefined;
    }
  },
  // A check that confirms the holder may determine a version that was unknown.
  observes: (op) => isRefusal(op) || (op.op === 'check' && op.out !== true),
  fingerprint: ({ holder, last }) => JSON.stringify([holder?.client ?? null, holder?.version ?? null, last]),
  describe({ holder, last }) {
    if (holder === undefined) return `free, last version ${last}`;
    return `held by client ${holder.client}, version ${holder.version ?? `unknown, above ${last}`}`;
  },
  narrow(ops) {
    const counted = countUnseen(ops);
    return { ops: counted?.ops ?? withOneName(withoutUnseenGrants(ops)), step: stepInOrder(ops) };
  },
};

/**
 * A step that skips a granted version is a dead end: that grant also needs a place, and none is left after the step.
 */
function stepInOrder(ops: readonly HistoryRecord[]): Narrowed<LockModelState>['step'] {
  const granted = ops.flatMap(({ op, ok, out }) => (op === 'acquire' && ok && typeof out === 'number' ? [out] : []));
  granted.sort((a, b) => a - b);
  const before = new Map(granted.map((version, i) => [version, granted[i - 1] ?? 0]));
  return (state, op) => {
    const after = lockModel.step(state, op);
    if (after === undefined || after.last === state.last) return after;
    const isGrant = op.op === 'acquire';
    const next = isGrant ? before.get(after.last) : granted.findLast((version) => version <= after.last);
    return (next ?? 0) <= state.last ? after : undefined;
  };
}

const HIDDEN = 'a hidden holder';

/**
 * All clients that may have been granted the lock, and may have released it at any time afterwards, are equivalent: if
 * one of them holds the lock, any other that asked in time might hold it instead. With one name for all of them, the
 * search knows that (G3).
 */
function withOneName(ops: readonly HistoryRecord[]): readonly HistoryRecord[] {
  const uses = new Map<
    HistoryRecord['c'],
    { readonly acquires: HistoryRecord[]; readonly releases: HistoryRecord[] }
  >();
  for (const op of ops) {
    const use = uses.get(op.c) ?? { acquires: [], releases: [] };
    uses.set(op.c, use);
    if (op.op === 'acquire') use.acquires.push(op);
    else if (op.op === 'release' && typeof op.v !== 'number') use.releases.push(op);
  }
  const hidden = new Set<HistoryRecord>();
  for (const { acquires, releases } of uses.values()) {
    const [acquire] = acquires;
    const [release] = releases;
    if (acquires.length !== 1 || releases.length !== 1 || acquire?.t1 !== null || release?.t1 !== null) continue;
    if (release.t0 <= acquire.t0) hidden.add(acquire).add(release);
  }
  return ops.map((op) => (hidden.has(op) ? { ...op, c: HIDDEN } : op));
}

/**
 * A grant of unknown outcome matters only through what it explains, a refusal of others, or through what reveals it: a
 * release or a check that no known grant explains. If there is neither, the grant can be ignored. A release of unknown
 * outcome matters only if there is a grant for it.
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
    if (op.t1 !== null || op.op === 'force') return true;
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

/**
 * Whether a release refers to the current grant. If the current grant's version is unknown: whether it may refer to it.
 */
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

function force(state: LockModelState, op: HistoryRecord): LockModelState | undefined {
  if (isRefusal(op)) return state.holder === undefined ? state : undefined; // Nobody held it.
  if (state.holder === undefined) return op.t1 === null ? state : undefined;
  return { holder: undefined, last: state.last };
}
