import { createHash, type Hash } from 'node:crypto';
import { type Clock, ServiceError, type Timer, toServiceError } from '@remora/base';
import { BackupEncoder, SNAPSHOT_BLOCK_BYTES } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { Asked, Backend } from '../../backend.ts';
import type { StreamHandler, StreamSink } from '../../calls.ts';
import type { Headers } from '../headers.ts';
import type { KeyScans } from './key-scans.ts';
import { plainKeyPages } from './plain-keys.ts';

export interface SnapshotDeps extends Asked {
  readonly backend: Backend;
  readonly headers: Headers;
  readonly clock: Clock;
  readonly scans: KeyScans;
  /** The program that writes the image, for people. */
  readonly program: string;
}

/** As in etcd (`snapshotSendBufferSize`). */
const BLOB_BYTES = 32 * 1024;
/** About what a pair takes in the image besides its key and value. */
const PAIR_OVERHEAD_BYTES = 24;
/** How long a client may leave everything unread that waits for it, which is at most a page (SN3, SN5). */
const STALLED_MS = 60_000;

/**
 * `Maintenance.Snapshot`: streams the image of a backup, which `remora admin restore` takes.
 *
 * SN1. The image holds all plain keys as of one revision. They are read twice, because the header counts them; the
 *      revision is that of the first reading.
 * SN2. The end of the image is its checksums, padding and a SHA-256, by which etcd's clients recognize a whole file
 *      (backup-format.ts BF3). A stream that breaks off has no end, and `restore` refuses the file.
 * SN3. While the client does not read, nothing is read from the ranges: the stream keeps at most one page.
 * SN4. `remaining_bytes` is an estimate until the last blob, which has 0.
 * SN5. A client that reads nothing for `STALLED_MS` loses its stream: few may run at a time (`KeyScans`).
 */
export class SnapshotStream implements StreamHandler<pb.SnapshotRequest> {
  readonly #deps: SnapshotDeps;
  readonly #sink: StreamSink<pb.SnapshotResponse>;
  readonly #over = new AbortController();
  readonly #sum: Hash = createHash('sha256');
  #resume: (() => void) | undefined;
  #blocked = false;
  #revision = 0;
  #expectedBytes = 0;
  #sentBytes = 0;

  constructor(deps: SnapshotDeps, sink: StreamSink<pb.SnapshotResponse>) {
    this.#deps = deps;
    this.#sink = sink;
  }

  onRequest(): boolean {
    const leave = this.#deps.scans.enter();
    this.#send()
      .then(
        () => this.#sink.end(),
        (error: unknown) => this.#sink.end(toServiceError(error)),
      )
      .finally(leave);
    return true;
  }

  onDrain(): void {
    this.#blocked = false;
    this.#resume?.();
    this.#resume = undefined;
  }

  onHalfClose(): void {}

  onClose(): void {
    this.#over.abort();
    this.onDrain();
  }

  async #send(): Promise<void> {
    const { backend, clock, program, principal } = this.#deps;
    const { signal } = this.#over;
    const pairs = await this.#count();
    const encoder = new BackupEncoder();
    const { clusterId } = backend.view();
    const header = { clusterId, revision: this.#revision, pairs, takenAtMs: clock.wallMs(), program };
    await this.#put(encoder.begin(header));
    let sent = 0;
    for await (const { kvs } of plainKeyPages(backend, { revision: this.#revision, signal, principal })) {
      if (kvs.length > 0) await this.#put(encoder.pairs(kvs));
      sent += kvs.length;
    }
    if (sent !== pairs) {
      const message = `the ranges returned ${sent} keys at revision ${this.#revision}, after ${pairs} before`;
      throw new ServiceError('INTERNAL', message);
    }
    await this.#put(encoder.end());
    await this.#put(
      Buffer.alloc((SNAPSHOT_BLOCK_BYTES - (this.#sentBytes % SNAPSHOT_BLOCK_BYTES)) % SNAPSHOT_BLOCK_BYTES),
    );
    await this.#write(this.#sum.digest(), 0);
  }

  /** SN1. */
  async #count(): Promise<number> {
    const { backend, principal } = this.#deps;
    const { signal } = this.#over;
    let pairs = 0;
    for await (const { kvs, revision } of plainKeyPages(backend, { revision: 0, signal, principal })) {
      this.#revision = revision;
      pairs += kvs.length;
      for (const { key, value } of kvs) this.#expectedBytes += key.length + value.length + PAIR_OVERHEAD_BYTES;
    }
    return pairs;
  }

  async #put(bytes: Buffer): Promise<void> {
    this.#sum.update(bytes);
    for (let at = 0; at < bytes.length; at += BLOB_BYTES) {
      const blob = bytes.subarray(at, at + BLOB_BYTES);
      this.#sentBytes += blob.length;
      await this.#write(blob, Math.max(1, this.#expectedBytes - this.#sentBytes));
    }
  }

  /** SN3, SN5. */
  async #write(blob: Buffer, remainingBytes: number): Promise<void> {
    this.#over.signal.throwIfAborted();
    const header = this.#deps.headers.make(this.#revision, 0);
    this.#blocked = !this.#sink.write({ header, remainingBytes: BigInt(remainingBytes), blob, version: '' });
    if (!this.#blocked) return;
    let late: Timer | undefined;
    await new Promise<void>((resolve, reject) => {
      this.#resume = resolve;
      late = this.#deps.clock.setTimer(STALLED_MS, () => reject(stalled()));
    }).finally(() => late?.cancel());
  }
}

function stalled(): ServiceError {
  const message = `the client has read nothing of the snapshot for ${STALLED_MS / 1_000} s; take it again`;
  return new ServiceError('DEADLINE_EXCEEDED', message);
}
