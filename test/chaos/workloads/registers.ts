/**
 * A few contended keys per round: get, put, delete and compare-and-set, through the SDK (patient and hasty) and through
 * etcd's API. Every value is written once, so a lost, repeated or stale write shows.
 */
import type { Request, Value } from '../../checkers/index.ts';
import type { KvClient, Outcome } from '../clients/kv-client.ts';
import { SdkKv } from '../clients/sdk-kv.ts';
import { type Client, type MakeWorkers, namesFor, type Turn } from './workload.ts';

const KEYS = 6;
const REGISTERS = 'register/';

/** The prefix of the keys of a round. */
export function registersOf(r: number): string {
  return `${REGISTERS}${r}/`;
}

export function registerKeys(r: number): readonly string[] {
  return Array.from({ length: KEYS }, (_, i) => `${registersOf(r)}${i}`);
}

export const registers: MakeWorkers = (client) => {
  const patient = (i: number) => new SdkKv(`${client.name}.sdk${i}`, client.remora);
  const clients: readonly KvClient[] = [
    patient(1),
    patient(2),
    patient(3),
    patient(4),
    new SdkKv(`${client.name}.hasty`, client.hasty),
    client.raw,
    client.loyal,
    client.loyal,
    client.loyal,
  ];
  const value = namesFor(client, 'r');
  return clients.map((kv) => worker(client, kv, value));
};

function worker(client: Client, kv: KvClient, value: () => string): Turn {
  const seen = new Map<string, Value>();
  return async () => {
    const r = client.journal.round;
    const k = `${registersOf(r)}${client.random.int(KEYS)}`;
    const request = drawRequest(client, { c: kv.name, k, v: value(), x: seen.get(k) ?? null });
    const outcome = await asked(client, r, request, () => perform(kv, request));
    if (request.op === 'get' && outcome.type === 'done') {
      if (seen.size > 2 * KEYS) seen.clear();
      seen.set(k, outcome.out ?? null);
    }
  };
}

function drawRequest({ random }: Client, { c, k, v, x }: Omit<Request, 'op'>): Request {
  const kind = random.int(20);
  if (kind < 7) return { c, k, op: 'get' };
  if (kind < 13) return { c, k, op: 'put', ...(v !== undefined && { v }) };
  if (kind < 15) return { c, k, op: 'del' };
  return { c, k, op: 'cas', x: x ?? null, ...(v !== undefined && { v }) };
}

function perform(kv: KvClient, { op, k, v, x }: Request): Promise<Outcome> {
  switch (op) {
    case 'get':
      return kv.get(k);
    case 'put':
      return kv.put(k, String(v));
    case 'del':
      return kv.delete(k);
    default:
      return kv.compareAndSet(k, x === null || x === undefined ? null : String(x), String(v));
  }
}

/** Performs a request of a history, and records the request and its answer. */
export async function asked(
  client: Client,
  r: number,
  request: Request,
  perform: () => Promise<Outcome>,
): Promise<Outcome> {
  const operation = client.journal.begin(request.op === 'append' ? 'lists' : 'registers', r, request);
  const outcome = await perform();
  switch (outcome.type) {
    case 'done': {
      const { type, ...a } = outcome;
      client.newestRevision = Math.max(client.newestRevision, a.revision ?? 0);
      operation.end(type, { a });
      break;
    }
    case 'unknown':
      operation.end('unknown');
      break;
    case 'failed':
      operation.end('refused', {
        code: outcome.why,
        ...(outcome.detail !== undefined && { a: { why: outcome.detail } }),
      });
  }
  return outcome;
}
