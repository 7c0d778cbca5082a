/** What all kinds of load have in common. A load runs in a client process, and only records what it observes. */
import type { Random } from '@remora/base';
import type { RemoraClient } from 'remora';
import type { RawKv } from '../clients/raw-kv.ts';
import type { Journal } from '../journal/journal.ts';
import type { Access } from '../users/access.ts';
import type { Visitor } from '../users/rights.ts';

export interface Client {
  /** Differs from that of any other client process, and of an earlier life of this one. */
  readonly name: string;
  readonly journal: Journal;
  readonly random: Random;
  /** `host:port` each. */
  readonly endpoints: readonly string[];
  /** Absent: plain text, and no users. */
  readonly access: Access | undefined;
  /** With a time-out that a user would choose. */
  readonly remora: RemoraClient;
  /** With a time-out so short that outcomes stay unknown. */
  readonly hasty: RemoraClient;
  /** etcd's API at one node, without retries and with a short time-out. */
  readonly raw: RawKv;
  /** The same, but it waits: its request is the first one that a node sees after it stood still. */
  readonly loyal: RawKv;
  readonly resource: Resource;
  /** Absent: the cluster has no users. */
  readonly visits: Visits | undefined;
  /** The highest revision in any answer. */
  newestRevision: number;
  pause(ms: number): Promise<void>;
}

/** Users whose rights change, in addition to the user of the load. */
export interface Visits {
  readonly visitors: readonly Visitor[];
  /** The number of the newest acknowledged password. Undefined: there is no such user. */
  password(user: string): number | undefined;
  /** `password`: null for a certificate. @throws ServiceError */
  connect(user: string, password: number | null): Promise<RemoraClient>;
}

/**
 * A resource outside of the cluster that a lock protects. It refuses fencing versions below the highest one that it has
 * seen.
 */
export interface Resource {
  /** Its number. Undefined: refused. */
  read(lock: string, version: number): Promise<number | undefined>;
  write(lock: string, version: number, value: number): Promise<boolean>;
}

/** One worker. Each call performs one operation. */
export type Turn = () => Promise<void>;

/** To add a workload: a file with one of these, its name in `index.ts`, and a judge in `judges/`. */
export type MakeWorkers = (client: Client) => readonly Turn[];

/** Unique in the run: a value that is read identifies the request that wrote it. */
export function namesFor(client: Client, what: string): () => string {
  let next = 1;
  return () => `${client.name}${what}${next++}`;
}

/**
 * A worker each of whose turns belongs to the round in which it begins. The round is not judged before the turn has
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
