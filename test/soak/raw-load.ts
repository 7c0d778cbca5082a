/**
 * A process that sends requests at a given rate, whatever their outcome: none waits for another one, none is repeated,
 * and there is no pause after a refusal. It sends puts over the Pipe and, for a part, over etcd's gRPC API.
 *
 * A request belongs to the window of time in which it was sent.
 */

import { credentials, type ServiceError as GrpcError, Metadata } from '@grpc/grpc-js';
import { nodeClock, nodeRandom, silentLogger } from '@remora/base';
import { type Command, DEFAULT_CALLER_LIMITS, dialPipe, pipeCommand, ReconnectingChannel } from '@remora/protocol';
import { PutRequest } from '@remora/protocol/etcd';
import { KVClient } from '@remora/protocol/grpc-clients';
import { pause } from '../e2e/eventually.ts';
import { quantile } from '../support/quantile.ts';
import { tell } from './load-process.ts';

export const WINDOW_MS = 500;
/** The keys of this load. Each successful put creates a version of one of them. */
export const RAW_PREFIX = 'overload/raw/';
const RAW_KEYS = 1_000;
const CONNECTION_KEY = Buffer.from('overload/connection');
const REQUEST_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 5_000;
const VALUE = Buffer.alloc(64, 'x');

export interface RawLoadSpec {
  /** The gateway that receives all requests. */
  readonly endpoint: string;
  readonly connections: number;
  /** One request in this many uses etcd's API. */
  readonly etcdEvery: number;
  readonly phases: readonly Phase[];
}

const PHASES = ['before', 'during', 'after'] as const;
type PhaseName = (typeof PHASES)[number];

interface Phase {
  readonly name: PhaseName;
  readonly ratePerSecond: number;
  readonly seconds: number;
}

export interface Tally {
  readonly offered: number;
  readonly ok: number;
  /** Errors, by Remora's code. */
  readonly codes: Readonly<Record<string, number>>;
  /** The latencies of successful requests. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Window extends Tally {
  readonly phase: PhaseName;
  /** Since the beginning of the phase. */
  readonly atMs: number;
}

export interface RawLoadResult {
  readonly phases: Readonly<Record<PhaseName, Tally>>;
  readonly windows: readonly Window[];
}

/** Runs the phases, and sends the parent `{ type: 'result', ...RawLoadResult }`. */
export async function runRawLoad(spec: RawLoadSpec): Promise<void> {
  const senders = Array.from({ length: spec.connections }, () => new Sender(spec.endpoint));
  await Promise.all(senders.map((sender) => sender.connected()));
  await tell({ type: 'offering' });
  const counted: Counted[] = [];
  const nextSender = roundRobin(senders);
  for (const phase of spec.phases) await offer(phase, { spec, nextSender, counted });
  // Every request ends by its time-out.
  while (unsettled > 0) await pause(20);
  const result: RawLoadResult = {
    phases: {
      before: total(counted, 'before'),
      during: total(counted, 'during'),
      after: total(counted, 'after'),
    },
    windows: counted.map(({ phase, atMs, ...each }) => ({ phase, atMs, ...tally([each]) })),
  };
  await tell({ type: 'result', ...result });
  for (const sender of senders) sender.close();
}

interface Counts {
  offered: number;
  readonly okMs: number[];
  readonly codes: Record<string, number>;
}

interface Counted extends Counts {
  readonly phase: PhaseName;
  readonly atMs: number;
}

/** Sends the requests that are due, until the phase is over. */
async function offer(
  phase: Phase,
  {
    spec,
    nextSender,
    counted,
  }: { readonly spec: RawLoadSpec; readonly nextSender: () => Sender; readonly counted: Counted[] },
): Promise<void> {
  const beganMs = performance.now();
  let sent = 0;
  let window: Counted | undefined;
  for (;;) {
    const elapsedMs = performance.now() - beganMs;
    if (elapsedMs >= phase.seconds * 1_000) return;
    const atMs = Math.floor(elapsedMs / WINDOW_MS) * WINDOW_MS;
    if (window?.atMs !== atMs) {
      window = { phase: phase.name, atMs, offered: 0, okMs: [], codes: {} };
      counted.push(window);
    }
    const due = (elapsedMs * phase.ratePerSecond) / 1_000;
    for (; sent < due; sent++) {
      const sender = nextSender();
      const key = Buffer.from(`${RAW_PREFIX}${sent % RAW_KEYS}`);
      if (sent % spec.etcdEvery === 0) sender.putByEtcd(key, window);
      else sender.putByPipe(key, window);
    }
    await pause(1);
  }
}

/** One client's connections. */
class Sender {
  readonly #channel: ReconnectingChannel;
  readonly #etcd: KVClient;
  readonly #idPrefix = `${nodeRandom().bytes(12).toString('base64url')}.`;
  #nextId = 1;

  constructor(endpoint: string) {
    const plain = credentials.createInsecure();
    this.#channel = new ReconnectingChannel(
      {
        connect: ({ address }) => dialPipe(address, { clock: nodeClock() }),
        clock: nodeClock(),
        random: nodeRandom(),
        logger: silentLogger,
        options: { connectTimeoutMs: CONNECT_TIMEOUT_MS, limits: DEFAULT_CALLER_LIMITS },
      },
      0,
      () => endpoint,
    );
    this.#etcd = new KVClient(endpoint, plain, { 'grpc.use_local_subchannel_pool': 1, 'grpc.enable_retries': 0 });
  }

  /** Sends one successful put of each kind, so that the first measured ones need not wait for connections. */
  async connected(): Promise<void> {
    const counts: Counts = { offered: 0, okMs: [], codes: {} };
    for (let tries = 0; counts.okMs.length < 2; tries++) {
      if (tries > 50) throw new Error(`no put succeeded: ${JSON.stringify(counts.codes)}`);
      const answered = counts.okMs.length;
      if (answered === 0) this.putByPipe(CONNECTION_KEY, counts);
      else this.putByEtcd(CONNECTION_KEY, counts);
      await pause(100);
    }
  }

  putByPipe(key: Buffer, counts: Counts): void {
    const command: Command = {
      type: 'kv',
      op: {
        type: 'put',
        key,
        value: VALUE,
        lease: 0n,
        prevKv: false,
        ignoreValue: false,
        ignoreLease: false,
      },
    };
    const request = {
      command,
      requestId: this.#idPrefix + (this.#nextId++).toString(36),
      timeoutMs: REQUEST_TIMEOUT_MS,
    };
    const settle = begin(counts);
    this.#channel.call(pipeCommand, request, { timeoutMs: REQUEST_TIMEOUT_MS }, (error) => settle(error?.code));
  }

  putByEtcd(key: Buffer, counts: Counts): void {
    const request = PutRequest.fromPartial({ key, value: VALUE });
    const settle = begin(counts);
    const options = { deadline: Date.now() + REQUEST_TIMEOUT_MS };
    this.#etcd.put(request, new Metadata(), options, (error) => settle(error === null ? undefined : codeOf(error)));
  }

  close(): void {
    this.#channel.close();
    this.#etcd.close();
  }
}

let unsettled = 0;

/** Counts a request as offered. The returned function counts its outcome. */
function begin(counts: Counts): (code: string | undefined) => void {
  const sentMs = performance.now();
  counts.offered++;
  unsettled++;
  return (code) => {
    unsettled--;
    if (code === undefined) counts.okMs.push(performance.now() - sentMs);
    else counts.codes[code] = (counts.codes[code] ?? 0) + 1;
  };
}

function codeOf(error: GrpcError): string {
  const [code] = error.metadata.get('remora-code');
  return code === undefined ? `gRPC ${error.code}` : String(code);
}

function total(counted: readonly Counted[], phase: PhaseName): Tally {
  return tally(counted.filter((each) => each.phase === phase));
}

function tally(parts: readonly Counts[]): Tally {
  const okMs = parts.flatMap((part) => part.okMs);
  const codes: Record<string, number> = {};
  for (const part of parts) {
    for (const [code, count] of Object.entries(part.codes)) codes[code] = (codes[code] ?? 0) + count;
  }
  return {
    offered: parts.reduce((sum, { offered }) => sum + offered, 0),
    ok: okMs.length,
    codes,
    p50Ms: quantile(okMs, 0.5),
    p99Ms: quantile(okMs, 0.99),
  };
}

function roundRobin<Item>(items: readonly Item[]): () => Item {
  let next = 0;
  return () => {
    const item = items[next++ % items.length];
    if (item === undefined) throw new Error('nothing to choose from');
    return item;
  };
}
