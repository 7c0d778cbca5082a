/** What every kind of load has in common. */
import type { ErrorCode } from '@remora/base';
import type { AnyRecord } from '../../../checkers/index.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';

export interface Workload {
  readonly name: string;
  /** What one client does until `world.resting`; a client that vanishes meanwhile is simply never heard of again. */
  run(life: ClientLife): Promise<void>;
  /** A client vanished. */
  ended?(life: ClientLife): void;
  /** What is still to come once the clients rest; empty when nothing is. */
  missing?(): string;
  /** What clients asked and were told, where it is kept as such. */
  history?(): readonly AnyRecord[];
  /** What happened in it that has to happen for its checks to mean something; added up over runs. */
  figures?(): Readonly<Record<string, number>>;
  /** Throws or reports a `Violation` if a promise was broken. The cluster is healed, and all clients rest. */
  check(): void | Promise<void>;
}

/** To add a workload: a file that exports one of these, and its name in `workloads/index.ts`. */
export type MakeWorkload = (world: World) => Workload;

export interface OperationCounts {
  /** Answered, as asked or otherwise: a compare that failed is an answer. */
  done: number;
  /** Certainly without effect. */
  refused: number;
  unknown: number;
}

export interface OperationEnd {
  readonly how: keyof OperationCounts;
  /** Of the error; undefined when it was answered as asked. */
  readonly code?: ErrorCode | undefined;
}

export function newCounts(): OperationCounts {
  return { done: 0, refused: 0, unknown: 0 };
}
