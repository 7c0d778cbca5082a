/**
 * A process of well-behaved SDK clients: sessions that hold a lock all the time, and workers that take turns at other
 * locks.
 */
import { type ClientSession, connect, type HeldLock, type RemoraClient, ServiceError } from 'remora';
import { pause } from '../e2e/eventually.ts';
import { tell, told } from './load-process.ts';

const SESSIONS_PER_CLIENT = 5;
const TURN_LOCKS = 2;

export interface HoldersSpec {
  readonly endpoints: readonly string[];
  readonly sessions: number;
  readonly ttlMs: number;
  /** The number of workers that take turns, and how long each rests after a turn. */
  readonly workers: number;
  readonly restMs: number;
}

export interface HoldersResult {
  readonly sessions: number;
  /** Sessions and locks that ended unexpectedly, with the reason. */
  readonly lost: readonly string[];
  /** Locks that the initial grant still holds, according to the cluster. */
  readonly stillHeld: number;
  readonly turns: number;
  /** Failed turns, by error code. */
  readonly codes: Readonly<Record<string, number>>;
}

/** Sends `holding` once every session holds its lock. On `stop` it checks them and sends the `result`. */
export async function runHolders(spec: HoldersSpec): Promise<void> {
  const count = Math.ceil(spec.sessions / SESSIONS_PER_CLIENT);
  const { endpoints, ttlMs: sessionTtl } = spec;
  const clients = await Promise.all(Array.from({ length: count }, () => connect({ endpoints, sessionTtl })));
  const lost: string[] = [];
  const holdings = await Promise.all(
    Array.from({ length: spec.sessions }, (_, i) => hold(clientOf(clients, i), i, spec.ttlMs)),
  );
  for (const { session, held } of holdings) {
    session.signal.addEventListener('abort', () => lost.push(`session: ${String(session.signal.reason)}`));
    held.signal.addEventListener('abort', () => lost.push(`lock: ${String(held.signal.reason)}`));
  }
  const turns = new Turns(spec.restMs);
  const over = new AbortController();
  const workers = Array.from({ length: spec.workers }, (_, i) => turns.take(clientOf(clients, i), i, over.signal));
  const stopped = told('stop');
  await tell({ type: 'holding' });
  await stopped;
  over.abort();
  await Promise.all(workers);
  const stillHeld = await Promise.all(holdings.map(({ held }) => held.check()));
  const result: HoldersResult = {
    sessions: holdings.length,
    lost: [...lost],
    stillHeld: stillHeld.filter(Boolean).length,
    turns: turns.count,
    codes: turns.codes,
  };
  await tell({ type: 'result', ...result });
  await Promise.all(clients.map((client) => client.close()));
}

interface Holding {
  readonly session: ClientSession;
  readonly held: HeldLock;
}

async function hold(client: RemoraClient, n: number, ttl: number): Promise<Holding> {
  const session = await client.session({ ttl });
  return { session, held: await session.lock(`overload/held/${n}`).acquire() };
}

class Turns {
  count = 0;
  readonly codes: Record<string, number> = {};
  readonly #restMs: number;

  constructor(restMs: number) {
    this.#restMs = restMs;
  }

  async take(client: RemoraClient, worker: number, over: AbortSignal): Promise<void> {
    const lock = client.lock(`overload/turn/${worker % TURN_LOCKS}`);
    while (!over.aborted) {
      try {
        const held = await lock.acquire({ signal: over });
        this.count++;
        await held.release();
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        if (!over.aborted) this.codes[error.code] = (this.codes[error.code] ?? 0) + 1;
      }
      await pause(this.#restMs);
    }
  }
}

function clientOf(clients: readonly RemoraClient[], n: number): RemoraClient {
  const client = clients[n % clients.length];
  if (client === undefined) throw new Error('there is no client');
  return client;
}
