/** Keeps a fixed number of operations in flight per group, or begins so many per second, and takes the time of each. */
import { dialFrames, type FrameStream, nodeClock, SERVICE } from '@remora/base';
import { APPLIED, decodeReplies, encodeRequest, LOAD_SERVICE } from './load-wire.ts';
import type { RaftLoadArguments } from './messages.ts';

/** After a refusal, so that a node that does not lead is not asked in a tight loop. */
const REFUSED_PAUSE_MS = 2;
/** The first byte tells a single operation from a batch. */
const PAYLOAD_BYTE = 0x5a;

interface Connection {
  readonly stream: FrameStream;
  queued: number[];
}

export class LoadClient {
  readonly #args: RaftLoadArguments;
  readonly #payload: Buffer;
  readonly #groupOf: (slot: number) => number;
  /** By slot. */
  readonly #connections: Connection[] = [];
  readonly #begunMs: Float64Array;
  readonly #all: readonly Connection[];
  /** Slots with nothing in flight, of an open load. */
  readonly #free: number[] = [];
  #latencies: number[] = [];
  #errors = 0;
  #scheduled = false;
  #over = false;

  constructor(args: RaftLoadArguments) {
    const { targets, inflightPerGroup, payloadBytes } = args;
    this.#args = args;
    this.#payload = Buffer.alloc(payloadBytes, PAYLOAD_BYTE);
    const byPort = new Map<number, Connection>();
    const groups: number[] = [];
    for (const { groupId, port } of targets) {
      const connection = byPort.get(port) ?? this.#connect(port);
      byPort.set(port, connection);
      for (let i = 0; i < inflightPerGroup; i++) {
        this.#connections.push(connection);
        groups.push(groupId);
      }
    }
    this.#all = [...byPort.values()];
    this.#groupOf = (slot) => groups[slot] ?? 0;
    this.#begunMs = new Float64Array(groups.length);
  }

  start(): void {
    const nowMs = performance.now();
    const { opsPerSecond } = this.#args;
    if (opsPerSecond > 0) {
      for (let slot = 0; slot < this.#connections.length; slot++) this.#free.push(slot);
      this.#beginDue(nowMs, 1000 / opsPerSecond);
    } else {
      for (let slot = 0; slot < this.#connections.length; slot++) this.#issue(slot, nowMs);
    }
  }

  /** Forgets what was measured so far. */
  reset(): void {
    this.#latencies = [];
    this.#errors = 0;
  }

  stop(): { readonly latencies: number[]; readonly errors: number } {
    this.#over = true;
    return { latencies: this.#latencies, errors: this.#errors };
  }

  #connect(port: number): Connection {
    const hello = { [SERVICE]: LOAD_SERVICE };
    const stream = dialFrames(
      `127.0.0.1:${port}`,
      hello,
      { clock: nodeClock() },
      {
        onHello() {},
        onFrame: (frame) => this.#replies(frame),
        onDrain() {},
        onEnd({ message }) {
          throw new Error(message);
        },
      },
    );
    return { stream, queued: [] };
  }

  /** Open load: begins what is due by now, as far as there are free slots. What must wait is due still. */
  #beginDue(dueMs: number, everyMs: number): void {
    if (this.#over) return;
    let nextMs = dueMs;
    const nowMs = performance.now();
    for (; nextMs <= nowMs; nextMs += everyMs) {
      const slot = this.#free.pop();
      if (slot === undefined) break;
      this.#issue(slot, nextMs);
    }
    setTimeout(() => this.#beginDue(nextMs, everyMs), 1);
  }

  #issue(slot: number, nowMs: number): void {
    if (this.#over) return;
    this.#begunMs[slot] = nowMs;
    this.#connections[slot]?.queued.push(slot);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    const request = { mode: this.#args.entries, payload: this.#payload, groupOf: this.#groupOf };
    for (const connection of this.#all) {
      const slots = connection.queued;
      if (slots.length === 0) continue;
      connection.queued = [];
      connection.stream.send(encodeRequest(slots, request));
    }
  }

  #replies(frame: Buffer): void {
    const nowMs = performance.now();
    decodeReplies(frame, (slot, outcome) => {
      if (outcome === APPLIED) {
        this.#latencies.push(nowMs - (this.#begunMs[slot] ?? nowMs));
        if (this.#args.opsPerSecond > 0) this.#free.push(slot);
        else this.#issue(slot, nowMs);
      } else {
        this.#errors++;
        setTimeout(() => this.#issue(slot, performance.now()), REFUSED_PAUSE_MS);
      }
    });
  }
}
