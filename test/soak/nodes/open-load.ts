/**
 * A process with several clients and an open-loop load: requests begin when they are due, whatever happens to the
 * others.
 *
 * O1. The time when a request is due is fixed in advance (`Arrivals`). Its latency counts from that time, not from when
 *     it could be sent. Therefore a cluster that stands still affects all requests that were due meanwhile.
 * O2. A request belongs to the phase in which it was due.
 */
import { SeededRandom, ServiceError } from '@remora/base';
import { pause } from '../../e2e/eventually.ts';
import { quantile } from '../../support/quantile.ts';
import { tell } from '../load-process.ts';
import { Arrivals } from './arrivals.ts';
import { type ClientLimits, KEYS, type Kind, kindOf, MixClient } from './mix.ts';

export interface OpenLoadSpec {
  readonly endpoints: readonly string[];
  readonly clients: number;
  readonly seed: number;
  readonly limits: ClientLimits;
}

/** The orders to the process. */
export type LoadOrder =
  | { readonly type: 'measure'; readonly inflight: number; readonly seconds: number }
  | { readonly type: 'offer'; readonly phase: string; readonly ratePerSecond: number }
  | { readonly type: 'finish' };

interface Latency {
  readonly ok: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
}

export interface PhaseResult {
  readonly phase: string;
  readonly seconds: number;
  readonly offered: number;
  readonly all: Latency;
  readonly kinds: Readonly<Partial<Record<Kind, Latency>>>;
  /** The slowest requests, slowest first. */
  readonly slowest: readonly { readonly kind: Kind; readonly dueAt: string; readonly ms: number }[];
}

interface Failure {
  readonly phase: string;
  readonly kind: Kind;
  readonly dueAt: string;
  readonly error: string;
}

export interface OpenLoadResult {
  readonly phases: readonly PhaseResult[];
  readonly failed: number;
  /** The first failures. */
  readonly failures: readonly Failure[];
  /** Lost sessions, locks and watches. */
  readonly lost: readonly string[];
}

const PUMP_MS = 1;
const WARM_UP_MS = 2_000;
const FAILURES_MAX = 20;
const SLOWEST_MAX = 5;

/**
 * Obeys its parent's orders until the order to finish. Then it waits for the requests in progress and sends the result.
 */
export async function runOpenLoad(spec: OpenLoadSpec): Promise<number> {
  const random = new SeededRandom(spec.seed);
  const clients = await Promise.all(
    Array.from({ length: spec.clients }, (_, i) => MixClient.open(spec, `c${i}`, random)),
  );
  const part = Math.ceil(KEYS / clients.length);
  await Promise.all(clients.map((client, i) => client.fill(i * part, Math.min(KEYS, (i + 1) * part))));
  const load = new OpenLoad(clients, random);
  const finish = new Promise<void>((resolve) => {
    process.on('message', (message) => {
      const order = message as LoadOrder;
      if (order.type === 'measure') void load.measure(order).then((perSecond) => tell({ type: 'measured', perSecond }));
      if (order.type === 'offer') load.offer(order.phase, order.ratePerSecond);
      if (order.type === 'finish') resolve();
    });
  });
  await tell({ type: 'ready' });
  await finish;
  await tell({ type: 'result', ...(await load.finish()) });
  await Promise.all(clients.map((client) => client.close()));
  process.disconnect?.();
  return 0;
}

interface Done {
  readonly kind: Kind;
  readonly dueMs: number;
  readonly tookMs: number;
}

interface Phase {
  readonly name: string;
  readonly beganMs: number;
  endedMs: number;
  offered: number;
  readonly done: Done[];
}

class OpenLoad {
  readonly #clients: readonly MixClient[];
  readonly #random: SeededRandom;
  readonly #phases: Phase[] = [];
  readonly #failures: Failure[] = [];
  #failed = 0;
  #inFlight = 0;
  #arrivals: Arrivals | undefined;
  #pumping = false;
  #over = false;
  #turn = 0;

  constructor(clients: readonly MixClient[], random: SeededRandom) {
    this.#clients = clients;
    this.#random = random;
  }

  /** How many requests of the mix per second are answered with this many in progress. */
  async measure({ inflight, seconds }: { readonly inflight: number; readonly seconds: number }): Promise<number> {
    let answered = 0;
    let over = false;
    const worker = async (): Promise<void> => {
      while (!over) {
        await this.#nextClient().once(kindOf(this.#random));
        answered++;
      }
    };
    const workers = Promise.all(Array.from({ length: inflight }, worker));
    await pause(WARM_UP_MS);
    const before = answered;
    const beganMs = performance.now();
    await pause(seconds * 1_000);
    const perSecond = ((answered - before) * 1_000) / (performance.now() - beganMs);
    over = true;
    await workers;
    return perSecond;
  }

  /** Begins a phase, and ends the previous one. */
  offer(name: string, ratePerSecond: number): void {
    const nowMs = performance.now();
    this.#endPhase(nowMs);
    this.#phases.push({ name, beganMs: nowMs, endedMs: nowMs, offered: 0, done: [] });
    this.#arrivals ??= new Arrivals(this.#random, { ratePerSecond, atMs: nowMs });
    if (!this.#pumping) void this.#pump();
  }

  async finish(): Promise<OpenLoadResult> {
    this.#over = true;
    this.#endPhase(performance.now());
    while (this.#inFlight > 0) await pause(PUMP_MS);
    return {
      phases: this.#phases.map(phaseResult),
      failed: this.#failed,
      failures: this.#failures,
      lost: this.#clients.flatMap((client) => client.lost),
    };
  }

  #endPhase(nowMs: number): void {
    const last = this.#phases.at(-1);
    if (last !== undefined) last.endedMs = nowMs;
  }

  async #pump(): Promise<void> {
    this.#pumping = true;
    while (!this.#over) {
      const nowMs = performance.now();
      for (let due = this.#arrivals?.due(nowMs); due !== undefined; due = this.#arrivals?.due(nowMs)) this.#begin(due);
      await pause(PUMP_MS);
    }
  }

  /** O1, O2. */
  #begin(dueMs: number): void {
    const phase = this.#phases.findLast(({ beganMs }) => beganMs <= dueMs) ?? this.#phases.at(-1);
    if (phase === undefined) return;
    const kind = kindOf(this.#random);
    phase.offered++;
    this.#inFlight++;
    this.#nextClient()
      .once(kind)
      .then(
        () => phase.done.push({ kind, dueMs, tookMs: performance.now() - dueMs }),
        (error: unknown) => this.#fail({ phase: phase.name, kind, dueAt: timeOf(dueMs), error: textOf(error) }),
      )
      .finally(() => this.#inFlight--);
  }

  #fail(failure: Failure): void {
    this.#failed++;
    if (this.#failures.length < FAILURES_MAX) this.#failures.push(failure);
  }

  #nextClient(): MixClient {
    const client = this.#clients[this.#turn++ % this.#clients.length];
    if (client === undefined) throw new Error('there are no clients');
    return client;
  }
}

function phaseResult({ name, beganMs, endedMs, offered, done }: Phase): PhaseResult {
  const kinds: Partial<Record<Kind, Latency>> = {};
  for (const kind of new Set(done.map((each) => each.kind)))
    kinds[kind] = latency(done.filter((each) => each.kind === kind));
  const slowest = [...done].sort((a, b) => b.tookMs - a.tookMs).slice(0, SLOWEST_MAX);
  return {
    phase: name,
    seconds: (endedMs - beganMs) / 1_000,
    offered,
    all: latency(done),
    kinds,
    slowest: slowest.map(({ kind, dueMs, tookMs }) => ({ kind, dueAt: timeOf(dueMs), ms: Math.round(tookMs) })),
  };
}

function latency(done: readonly Done[]): Latency {
  const tookMs = done.map((each) => each.tookMs);
  return {
    ok: tookMs.length,
    p50Ms: quantile(tookMs, 0.5),
    p99Ms: quantile(tookMs, 0.99),
    longestMs: tookMs.at(-1) ?? 0,
  };
}

/** In the format of the nodes' logs. */
function timeOf(atMs: number): string {
  return new Date(performance.timeOrigin + atMs).toISOString();
}

function textOf(error: unknown): string {
  return error instanceof ServiceError ? `${error.code}: ${error.message}` : String(error);
}
