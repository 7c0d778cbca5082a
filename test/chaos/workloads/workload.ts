/** What every kind of load has in common. It runs in a client process, and only writes down what it sees. */
import type { Random } from '@remora/base';
import type { RemoraClient } from 'remora';
import type { RawKv } from '../clients/raw-kv.ts';
import type { Journal } from '../journal/journal.ts';

export interface Client {
  /** Unlike that of any other client process, or of an earlier life of this one. */
  readonly name: string;
  readonly journal: Journal;
  readonly random: Random;
  readonly endpoints: readonly string[];
  /** Has the time that a user would give a request. */
  readonly remora: RemoraClient;
  /** Gives up so soon that outcomes stay unknown. */
  readonly hasty: RemoraClient;
  /** etcd's API at one node, without a retry; gives up soon. */
  readonly raw: RawKv;
  /** The same, but it waits: what it asked is the first thing that a node sees which stood still. */
  readonly loyal: RawKv;
  readonly resource: Resource;
  /** The highest revision that any answer told. */
  newestRevision: number;
  pause(ms: number): Promise<void>;
}

/**
 * Something that a lock protects, outside of the cluster: it refuses fencing versions below the highest it has seen.
 */
export interface Resource {
  /** The number that it holds; undefined: refused. */
  read(lock: string, version: number): Promise<number | undefined>;
  write(lock: string, version: number, value: number): Promise<boolean>;
}

/** One worker: does one thing after another, each call one thing. */
export type Turn = () => Promise<void>;

/** To add a workload: a file with one of these, its name in `index.ts`, and a judge in `judges/`. */
export type MakeWorkers = (client: Client) => readonly Turn[];

/** Unlike any other text of the run: what is read names the request that wrote it. */
export function namesFor(client: Client, what: string): () => string {
  let next = 1;
  return () => `${client.name}${what}${next++}`;
}

/**
 * A worker each of whose turns belongs to the round in which it begins: that is judged no sooner than the turn has
 * ended.
 */
export function inRounds(client: Client, turn: (r: number) => Promise<void>): Turn {
  return async () => {
    const r = client.journal.round;
    const over = client.journal.hold(r);
    await turn(r);
    over();
  };
}
