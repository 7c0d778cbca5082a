import { toServiceError } from '@remora/base';
import type { KeyValue, KvEvent } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { WatchControl } from '../../backend.ts';
import type { StreamHandler, StreamSink } from '../../calls.ts';
import { fromKeyValue } from '../kv-responses.ts';
import type { BackendCalls } from './backend-calls.ts';
import { type Followed, follow } from './follow.ts';
import type { KeyLine } from './key-line.ts';

export interface ObserverDeps {
  readonly calls: BackendCalls;
  readonly line: KeyLine;
}

type LeaderResponse = pb.v3electionpb.LeaderResponse;

/**
 * One stream of `Election.Observe`: the present leader, its proclamations, and every later leader (etcd
 * `client/v3/concurrency/election.go`, `observe`).
 *
 * OB1. Each change of the leader's key is sent once, in order; a leader that came and went while a watch was broken may
 *      be missing, as in etcd. A leader that continues its campaign changes its key once (key-line.ts K5), also with
 *      the same value. etcd does not send that; here it is sent like a proclamation of the same value, which etcd does
 *      send.
 * OB2. While the client does not read, the watch is paused.
 */
export class LeaderObserver implements StreamHandler<pb.v3electionpb.LeaderRequest> {
  readonly #deps: ObserverDeps;
  readonly #sink: StreamSink<LeaderResponse>;
  readonly #over = new AbortController();
  #started = false;
  #control: WatchControl | undefined;
  #blocked = false;
  /** The modification that was sent last. */
  #told = 0;

  constructor(deps: ObserverDeps, sink: StreamSink<LeaderResponse>) {
    this.#deps = deps;
    this.#sink = sink;
  }

  onRequest({ name }: pb.v3electionpb.LeaderRequest): boolean {
    if (this.#started) return true;
    this.#started = true;
    this.#run(name).catch((error: unknown) => {
      if (!this.#over.signal.aborted) this.#sink.end(toServiceError(error));
    });
    return true;
  }

  onDrain(): void {
    this.#blocked = false;
    this.#control?.resume();
  }

  onHalfClose(): void {}

  onClose(): void {
    this.#over.abort();
  }

  async #run(name: Uint8Array): Promise<never> {
    const { line } = this.#deps;
    for (;;) {
      const { kv, header } = await line.patiently(this.#over.signal, () => line.head(name));
      const leader = kv ?? (await this.#firstPut(name, header.revision + 1));
      if (leader === undefined) continue;
      this.#tell(leader, header);
      await this.#whileThere(leader.key, Math.max(header.revision, leader.modRevision) + 1);
    }
  }

  /** Undefined if the watch broke. */
  async #firstPut(name: Uint8Array, from: number): Promise<KeyValue | undefined> {
    let found: KeyValue | undefined;
    await this.#follow({ ...this.#deps.line.span(name), from }, ({ type, kv }) => {
      if (type === 'put') found = kv;
      return found !== undefined;
    });
    return found;
  }

  async #whileThere(key: Uint8Array, from: number): Promise<void> {
    await this.#follow({ key, from }, ({ type, kv }) => {
      if (type === 'put') this.#tell(kv);
      return type === 'delete';
    });
  }

  async #follow(keys: Followed, enough: (event: KvEvent) => boolean): Promise<void> {
    const onControl = (control: WatchControl | undefined): void => {
      this.#control = control;
      if (this.#blocked) control?.pause();
    };
    const broken = await follow(this.#deps.calls, keys, { signal: this.#over.signal, enough, onControl });
    if (broken !== undefined) await this.#deps.line.pause(this.#over.signal);
  }

  #tell(kv: KeyValue, header = this.#deps.calls.header(kv.modRevision)): void {
    if (kv.modRevision === this.#told) return;
    this.#told = kv.modRevision;
    if (this.#sink.write({ header, kv: fromKeyValue(kv) })) return;
    this.#blocked = true;
    this.#control?.pause();
  }
}
