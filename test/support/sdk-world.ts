import { SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { type Backend, type BackendDone, createPipeRegistry, servePipe } from '@remora/gateway';
import type { ClusterView, FrameLink } from '@remora/protocol';
import { createMemoryLink, type MemoryLinkPair } from '@remora/protocol/testing';
import { type ClientOptions, type ClientPorts, RemoraClient } from 'remora';
import { anonymousConnection, NO_AUTHENTICATION } from '../../packages/gateway/test/support/no-authentication.ts';
import { DriftingClock } from './drifting-clock.ts';
import { SdkBackend } from './sdk-backend.ts';

export const GATEWAYS = ['a:1', 'b:1'];
const CLUSTER = 'the-world';

/** Two gateways on one cluster, any number of clients, and a clock that only moves on command. */
export class World {
  readonly clock = new ManualClock();
  readonly backend: SdkBackend;
  readonly links: { readonly address: string; readonly pair: MemoryLinkPair }[] = [];
  readonly down = new Set<string>();
  /** Addresses that never answer, not even with a refusal, as behind NAT. */
  readonly unreachable = new Set<string>();
  readonly unreachableTries: string[] = [];
  /** Gateways that stand still: they accept connections and send nothing. */
  readonly frozen = new Set<string>();
  /** Gateways that refuse clients of this cluster, because they belong to another one. */
  readonly foreign = new Set<string>();
  /** The addresses that gateways advertise to clients. */
  advertised: readonly string[] = [];
  /** Gateways that are up but cut off from the ranges: their requests time out. */
  readonly isolated = new Set<string>();
  /** Gateways that refuse all commands, because they are over their limit. */
  readonly overLimit = new Set<string>();
  /** The number of refused commands. */
  refused = 0;
  /** The client address of the leader's node, as gateways report it. */
  leader: string | undefined;
  held = 0;
  #seed = 1;

  /** `serverRate`: the speed of the cluster's clock. */
  constructor({ serverRate = 1 }: { readonly serverRate?: number } = {}) {
    this.backend = new SdkBackend(new DriftingClock(this.clock, serverRate));
  }

  /** `rate`: the speed of the client's clock. `more`: ports in addition to those that every client needs. */
  async client(options: Partial<ClientOptions> = {}, rate = 1, more: Partial<ClientPorts> = {}): Promise<RemoraClient> {
    const ports: ClientPorts = {
      clock: new DriftingClock(this.clock, rate),
      random: new SeededRandom(this.#seed++),
      logger: silentLogger,
      connectLink: ({ address, cluster }) => this.connect(address, cluster),
      liveness: {
        hold: () => {
          this.held++;
        },
        release: () => {
          this.held--;
        },
      },
      ...more,
    };
    return this.until(RemoraClient.open(ports, { endpoints: GATEWAYS, ...options }));
  }

  /** `cluster`: the cluster that the client expects, as in its hello. */
  connect(address: string, cluster?: string): FrameLink {
    if (this.unreachable.has(address)) {
      this.unreachableTries.push(address);
      return { start() {}, send: () => true, close() {} };
    }
    const pair = createMemoryLink(this.clock);
    this.links.push({ address, pair });
    const isRefused = cluster !== undefined && (this.foreign.has(address) || cluster !== CLUSTER);
    if (this.down.has(address) || isRefused) this.clock.setImmediate(() => pair.sever());
    else {
      if (this.frozen.has(address)) pair.stall(true);
      const registry = createPipeRegistry(this.#backendOf(address), {
        cluster: CLUSTER,
        identification: NO_AUTHENTICATION,
      });
      servePipe({ link: pair.server, connection: anonymousConnection(), registry, clock: this.clock });
    }
    return pair.client;
  }

  #view(): ClusterView {
    const view = this.backend.view();
    const [node] = view.nodes;
    if (node !== undefined && this.advertised.length > 0) {
      const nodes = this.advertised.map((clientAddress, i) => ({
        ...node,
        descriptor: { ...node.descriptor, nodeId: 100 + i, clientAddress },
      }));
      return { ...view, nodes };
    }
    if (this.leader === undefined || node === undefined) return view;
    const descriptor = { ...node.descriptor, nodeId: 9, clientAddress: this.leader };
    return { ...view, leaders: [[1, 9]], nodes: [{ ...node, descriptor }] };
  }

  #backendOf(address: string): Backend {
    const { backend, clock, isolated, overLimit } = this;
    const refuse = (done: BackendDone<never>): (() => void) => {
      this.refused++;
      done(new ServiceError('RESOURCE_EXHAUSTED', 'over the limit', { details: { retryAfterMs: 100 } }), undefined);
      return () => {};
    };
    const timeOut = (timeoutMs: number, done: BackendDone<never>): (() => void) => {
      const timer = clock.setTimer(timeoutMs, () => done(new ServiceError('DEADLINE_EXCEEDED', 'no range'), undefined));
      return () => timer.cancel();
    };
    return {
      nodeId: backend.nodeId,
      view: () => this.#view(),
      rangeTimeMs: () => backend.rangeTimeMs(),
      check: () => backend.check(),
      watch: (options, listener) => backend.watch(options, listener),
      watchLocks: (options, listener) => backend.watchLocks(options, listener),
      command: (command, options, done) => {
        if (overLimit.has(address)) return refuse(done);
        if (isolated.has(address)) return timeOut(options.timeoutMs, done);
        return backend.command(command, options, done);
      },
      query: (query, options, done) =>
        isolated.has(address) ? timeOut(options.timeoutMs, done) : backend.query(query, options, done),
    };
  }

  /** Breaks all open links. */
  sever(): void {
    for (const { pair } of this.links.splice(0)) pair.sever();
  }

  freeze(address: string): void {
    this.frozen.add(address);
    for (const link of this.links) if (link.address === address) link.pair.stall(true);
  }

  thaw(address: string): void {
    this.frozen.delete(address);
    for (const link of this.links) if (link.address === address) link.pair.stall(false);
  }

  stall(on: boolean): void {
    for (const { pair } of this.links) pair.stall(on);
  }

  async run(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 5) {
      this.clock.advance(Math.min(5, ms - passed));
      await turn();
    }
  }

  /** Lets time pass until the promise is settled. */
  async until<T>(promise: Promise<T>, maxMs = 120_000): Promise<T> {
    let settled = false;
    const settle = (): void => {
      settled = true;
    };
    promise.then(settle, settle);
    for (let passed = 0; passed < maxMs; passed += 5) {
      await turn();
      if (settled) return promise;
      this.clock.advance(5);
    }
    throw new Error(`not settled within ${maxMs} ms`);
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The code of the error with which the promise is rejected. 'ok' if it is fulfilled. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'ok',
    (error) => (error instanceof ServiceError ? error.code : String(error)),
  );
}
