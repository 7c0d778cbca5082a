/** Shared by all kinds of load. */
import type { ErrorCode } from '@remora/base';
import type { AnyRecord } from '../../../checkers/index.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';

export interface Workload {
  readonly name: string;
  /** The work of one client until `world.resting`; a client that vanishes meanwhile simply never returns. */
  run(life: ClientLife): Promise<void>;
  /** A client vanished. */
  ended?(life: ClientLife): void;
  /** What is still expected once the clients rest; empty if nothing is. */
  missing?(): string;
  /** The requests and answers of clients, if the workload records them. */
  history?(): readonly AnyRecord[];
  /** Figures that must not be 0 for its checks to be meaningful; added up over runs. */
  figures?(): Readonly<Record<string, number>>;
  /** Throws or reports a `Violation` if a promise was broken. The cluster is healed, and all clients rest. */
  check(): void | Promise<void>;
}

/** To add a workload: a file that exports one of these, and its name in `workloads/index.ts`. */
export type MakeWorkload = (world: World) => Workload;

export interface OperationCounts {
  /** Answered, as expected or otherwise: a failed compare is an answer. */
  done: number;
  /** Certainly without effect. */
  refused: number;
  unknown: number;
}

export interface OperationEnd {
  readonly how: keyof OperationCounts;
  /** The code of the error; undefined if it was answered as expected. */
  readonly code?: ErrorCode | undefined;
}

export function newCounts(): OperationCounts {
  return { done: 0, refused: 0, unknown: 0 };
}
