import { randomUUID } from 'node:crypto';
import type { LockState, RemoraClient } from 'remora';
import { expect } from 'vitest';
import { eventually } from '../eventually.ts';

/** The environment of a course: two clients at different gateways, and a name that no other course uses. */
export interface World {
  readonly client: RemoraClient;
  readonly other: RemoraClient;
  readonly endpoints: readonly string[];
  /** The HTTP addresses of the nodes. */
  readonly http: readonly string[];
  readonly name: string;
}

/**
 * The use of one feature in three parts. At `yield 'held'` something is held, and the leader changes. At `yield
 * 'waiting'` a client waits, or something is in progress, and the leader changes again.
 */
export type Course = (world: World) => AsyncGenerator<'held' | 'waiting', void, void>;

/** By the name of the feature. */
export type Courses = Readonly<Record<string, Course>>;

/** Covers two leader changes on a busy machine, because some requests wait. */
export const WHILE = { timeoutMs: 120_000 };

/** A session with this TTL survives a leader change on a busy machine. */
export const SURVIVING_TTL_MS = 10_000;

export const code = (expected: string) => expect.objectContaining({ code: expected });

export function unique(name: string): string {
  return `${name.replaceAll(' ', '-')}/${randomUUID()}`;
}

/** Waits until this many clients wait for a lock. */
export function waiters({ client }: World, name: string, count: number): Promise<unknown> {
  return eventually(`${count} wait for ${name}`, async () => (await client.locks.show(name))?.waiterCount === count);
}

export async function shown({ client }: World, name: string): Promise<LockState | undefined> {
  return client.locks.show(name);
}
