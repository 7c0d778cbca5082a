/** Clients that connected before an attack and go on during it, one through each door. */

import { Agent, request } from 'node:http';
import { credentials, Metadata } from '@grpc/grpc-js';
import { PutRequest } from '@remora/protocol/etcd';
import { KVClient } from '@remora/protocol/grpc-clients';
import { connect, type HeldLock, type RemoraClient } from 'remora';
import { pause } from '../../e2e/eventually.ts';
import type { NodeProcess } from '../../e2e/node-process.ts';

interface DoorResult {
  readonly door: string;
  readonly calls: number;
  readonly failures: readonly string[];
  readonly longestMs: number;
}

export interface BystanderResult {
  readonly doors: readonly DoorResult[];
  /** Whether the lock is still held by the grant from before the attack. */
  readonly isLockHeld: boolean;
}

const REST_MS = 50;
/** Guards against hangs. */
const CALL_MS = 60_000;

export class Bystanders {
  readonly #client: RemoraClient;
  readonly #kv: KVClient;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #held: HeldLock;
  readonly #doors: readonly Door[];

  private constructor(node: NodeProcess, client: RemoraClient, held: HeldLock) {
    this.#client = client;
    this.#held = held;
    this.#kv = new KVClient(node.client, credentials.createInsecure());
    this.#doors = [
      new Door('SDK', () => client.kv.put('bystander/sdk', 'x')),
      new Door('gRPC', () => this.#putByGrpc()),
      new Door('HTTP', () => this.#show(node)),
    ];
  }

  static async connect(node: NodeProcess): Promise<Bystanders> {
    const client = await connect({ endpoints: [node.client], requestTimeout: CALL_MS, sessionTtl: '60s' });
    const bystanders = new Bystanders(node, client, await client.lock('bystander').acquire());
    await Promise.all(bystanders.#doors.map((door) => door.try()));
    return bystanders;
  }

  /** Calls on and on. */
  begin(): void {
    for (const door of this.#doors) door.begin();
  }

  async end(): Promise<BystanderResult> {
    const doors = await Promise.all(this.#doors.map((door) => door.end()));
    const isLockHeld = !this.#held.signal.aborted && (await this.#held.check());
    await this.#client.close();
    this.#kv.close();
    this.#agent.destroy();
    return { doors, isLockHeld };
  }

  #putByGrpc(): Promise<void> {
    const key = Buffer.from('bystander/grpc');
    const put = PutRequest.fromPartial({ key, value: key });
    return new Promise((resolve, reject) => {
      this.#kv.put(put, new Metadata(), { deadline: Date.now() + CALL_MS }, (error) =>
        error === null ? resolve() : reject(error),
      );
    });
  }

  #show(node: NodeProcess): Promise<void> {
    return new Promise((resolve, reject) => {
      const url = `http://${node.http}/v1/locks/default/bystander`;
      const call = request(url, { agent: this.#agent, timeout: CALL_MS });
      call.on('response', (response) => {
        response.resume();
        response.on('end', () =>
          response.statusCode === 200 ? resolve() : reject(new Error(`status ${response.statusCode}`)),
        );
      });
      call.on('timeout', () => call.destroy(new Error('no answer')));
      call.on('error', reject);
      call.end();
    });
  }
}

class Door {
  readonly #name: string;
  readonly #call: () => Promise<unknown>;
  readonly #failures: string[] = [];
  #calls = 0;
  #longestMs = 0;
  #isOver = false;
  #running: Promise<void> = Promise.resolve();

  constructor(name: string, call: () => Promise<unknown>) {
    this.#name = name;
    this.#call = call;
  }

  async try(): Promise<void> {
    await this.#call();
  }

  begin(): void {
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const beganMs = performance.now();
      await this.#call().catch((error: unknown) => this.#failures.push(String(error)));
      this.#calls++;
      this.#longestMs = Math.max(this.#longestMs, performance.now() - beganMs);
      await pause(REST_MS);
    }
  }

  async end(): Promise<DoorResult> {
    this.#isOver = true;
    await this.#running;
    return { door: this.#name, calls: this.#calls, failures: this.#failures, longestMs: this.#longestMs };
  }
}
