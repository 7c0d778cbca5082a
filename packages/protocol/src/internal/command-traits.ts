import { brings, type ClusterVersion } from '@remora/base';
import type { Command } from './command.ts';

/** Who may send a command. Clients reach ranges only through a gateway, which refuses the other two (Pipe). */
export type CommandOrigin =
  | 'client'
  /** A gateway sends it for a request of its own: a restore, a step of a transaction over several ranges. */
  | 'gateway'
  /** The leader of a range proposes it in that range, or sends it to another one. */
  | 'range';

/**
 * How a request counts against a gateway's limit of requests per second.
 *  - `ordinary`: takes a token; the gateway refuses it when there is none.
 *  - `charged`: takes a token and is never refused. It ends something (a lock, a place in a queue, a lease) and so
 *    lowers the load: refusing it would leave other clients waiting and heartbeats running. Watches are of this class
 *    as well.
 *  - `free`: takes none. The leader answers it from memory without a change, and earlier ordinary requests bound how
 *    many there are: without heartbeats a session ends, and its locks with it.
 */
export type RequestClass = 'ordinary' | 'charged' | 'free';

export interface CommandTraits {
  readonly origin: CommandOrigin;
  /**
   * Whether it may change something that a revision counts, at most one per command. `unlessRead`: not if it only
   * reads.
   */
  readonly needsRevision: boolean | 'unlessRead';
  /**
   * `byLockCommand`: the lock command inside decides. Steps of transactions and commands of ranges do not pass the
   * limit.
   */
  readonly admission: RequestClass | 'byLockCommand';
}

/**
 * What other code has to know about a command without executing it, in one row for each.
 *
 * How commands are encoded, routed and executed is not here: those switches are exhaustive, so the compiler names the
 * places that a new command has to be added to.
 */
export const COMMAND_TRAITS = {
  kv: { origin: 'client', needsRevision: 'unlessRead', admission: 'ordinary' },
  txn: { origin: 'client', needsRevision: true, admission: 'ordinary' },
  lock: { origin: 'client', needsRevision: true, admission: 'byLockCommand' },
  leaseGrant: { origin: 'client', needsRevision: true, admission: 'ordinary' },
  leaseChange: { origin: 'client', needsRevision: false, admission: 'ordinary' },
  leaseRevoke: { origin: 'client', needsRevision: true, admission: 'charged' },
  compact: { origin: 'client', needsRevision: false, admission: 'ordinary' },

  // Restores reach it through the gateway's limit.
  raiseRevision: { origin: 'gateway', needsRevision: false, admission: 'ordinary' },
  // A transaction over several ranges brings its revision with it.
  txnPrepare: { origin: 'gateway', needsRevision: false, admission: 'ordinary' },
  txnDecide: { origin: 'gateway', needsRevision: false, admission: 'ordinary' },
  txnResolve: { origin: 'gateway', needsRevision: false, admission: 'ordinary' },
  txnForget: { origin: 'gateway', needsRevision: false, admission: 'ordinary' },

  leaseExpire: { origin: 'range', needsRevision: true, admission: 'ordinary' },
  leaseEnd: { origin: 'range', needsRevision: true, admission: 'ordinary' },
  leaseCheckpoint: { origin: 'range', needsRevision: false, admission: 'ordinary' },
  leaseRegister: { origin: 'range', needsRevision: false, admission: 'ordinary' },
  leaseRefer: { origin: 'range', needsRevision: false, admission: 'ordinary' },
  leaseSettle: { origin: 'range', needsRevision: false, admission: 'ordinary' },
  recount: { origin: 'range', needsRevision: false, admission: 'ordinary' },
  split: { origin: 'range', needsRevision: false, admission: 'ordinary' },
  seal: { origin: 'range', needsRevision: false, admission: 'ordinary' },
  merge: { origin: 'range', needsRevision: false, admission: 'ordinary' },
  refuseMerge: { origin: 'range', needsRevision: false, admission: 'ordinary' },
  unseal: { origin: 'range', needsRevision: false, admission: 'ordinary' },
  noop: { origin: 'range', needsRevision: false, admission: 'ordinary' },
} as const satisfies Record<Command['type'], CommandTraits>;

type TypesOf<Origin extends CommandOrigin> = {
  [Type in Command['type']]: (typeof COMMAND_TRAITS)[Type]['origin'] extends Origin ? Type : never;
}[Command['type']];

export type ClientCommand = Extract<Command, { readonly type: TypesOf<'client'> }>;

export function isClientCommand(command: Command): command is ClientCommand {
  return COMMAND_TRAITS[command.type].origin === 'client';
}

/**
 * Whether the entry of a command has a block of revisions, if the master numbers the range: for a change, and for a
 * prepare that reads at a named revision, which the block bounds (N6 of dataserver/state/numbering.ts).
 */
export function drawsRevisions(command: Command, version: ClusterVersion): boolean {
  if (command.type !== 'txnPrepare') return needsRevision(command);
  return brings(version, 'txnReadsUpToBlock') && command.ops.some(({ op }) => op.type === 'range' && op.revision > 0);
}

/** Whether a command may change something that a revision counts: at most one per command. */
export function needsRevision(command: Command): boolean {
  // Before the table, as most commands are of this type.
  if (command.type === 'kv') return command.op.type !== 'range';
  return COMMAND_TRAITS[command.type].needsRevision;
}
