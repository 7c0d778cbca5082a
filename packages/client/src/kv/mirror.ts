/**
 * A local copy of keys.
 *
 * MI1. The copy is exactly what the selected keys were at `revision`: all changes of one revision, wherever in the
 *      cluster the keys are, become visible together.
 * MI2. `revision` only grows.
 * MI3. Without a connection the copy stays as it is, and catches up in order afterwards. If its revision was compacted
 *      meanwhile, it is read again, and what differs becomes visible at once.
 * MI4. A copy never serves keys that it no longer follows: once it has ended, reading it throws the reason.
 */
import { binaryString, compareBytes, ServiceError, sleep, toServiceError } from '@remora/base';
import type { PipeWatchMessage } from '@remora/protocol';
import { COUNT_MAX, count, requireFunction, requireRevision, signal } from '../options/option-kinds.ts';
import { optionSet } from '../options/options.ts';
import { onAbort } from '../transport/abort.ts';
import { isLasting } from '../transport/request-errors.ts';
import type { Requester } from '../transport/requester.ts';
import type { Listing } from '../values/listing.ts';
import { KeyChanges, type WatchedKeys } from './key-changes.ts';
import { type BytesLike, KvPair, requireBytes, toBytes } from './keys.ts';
import type { KvPage } from './kv-options.ts';

export interface MirrorOptions {
  /** The most keys that the copy may have; it ends with RESOURCE_EXHAUSTED when there are more. Default 1,000,000. */
  readonly keysMax?: number | undefined;
  /** Ends the copy when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

export const MIRROR_OPTIONS = optionSet<MirrorOptions>('mirror', { keysMax: count(1, COUNT_MAX), signal });

const KEYS_MAX = 1_000_000;
/** The pause before keys are read again that could not be read, in ms. */
const READ_AGAIN_MS = 500;

type Changes = Extract<PipeWatchMessage, { readonly kind: 'events' }>;

/** What a mirror needs of `Kv`. */
export interface MirrorSource {
  readonly requester: Requester;
  readonly span: WatchedKeys;
  readonly list: () => Listing<KvPair, KvPage>;
}

/** A local copy of keys, kept up to date by a watch; made by `Kv.mirror`. End it with `close` or `await using`. */
export class KvMirror implements AsyncDisposable {
  readonly #source: MirrorSource;
  readonly #keysMax: number;
  #pairs = new Map<string, KvPair>();
  /** The pairs in the order of their keys, until the next change. */
  #sorted: readonly KvPair[] | undefined;
  #revision = 0;
  #changes: KeyChanges<Changes> | undefined;
  readonly #listeners = new Set<(mirror: KvMirror) => void>();
  readonly #waiting = new Set<{ readonly revision: number; resolve(): void; reject(reason: unknown): void }>();
  readonly #controller = new AbortController();

  constructor(source: MirrorSource, { keysMax = KEYS_MAX, signal: ending }: MirrorOptions) {
    this.#source = source;
    this.#keysMax = keysMax;
    if (ending !== undefined) onAbort(ending, () => this.close());
    if (ending?.aborted) this.close();
    else void this.#follow();
  }

  /** The revision that the copy shows (MI1); 0 before the keys were read. */
  get revision(): number {
    return this.#revision;
  }

  /** How many keys the copy has. */
  get size(): number {
    this.#check();
    return this.#pairs.size;
  }

  /** Aborts with the reason when the copy has ended: it was closed, or can no longer be kept up to date. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Resolves once the keys were read. @throws ServiceError the reason when the copy ends before. */
  ready(): Promise<void> {
    return this.reaches(1);
  }

  /**
   * Resolves once the copy shows a revision, or a later one: call it with that of your own write, to read it here.
   *
   * @throws ServiceError the reason when the copy ends before.
   */
  async reaches(revision: number): Promise<void> {
    requireRevision(revision, 'revision');
    this.#check();
    if (this.#revision >= Math.max(1, revision)) return;
    const { liveness } = this.#source.requester.ports;
    liveness.hold();
    await new Promise<void>((resolve, reject) => {
      this.#waiting.add({ revision: Math.max(1, revision), resolve, reject });
    }).finally(() => liveness.release());
  }

  /** The pair of a key; undefined when it does not exist. @throws ServiceError the reason when the copy has ended. */
  get(key: BytesLike): KvPair | undefined {
    requireBytes(key, 'the key to get');
    this.#check();
    return this.#pairs.get(binaryString(toBytes(key)));
  }

  /** All pairs in the order of their keys. @throws ServiceError the reason when the copy has ended. */
  values(): readonly KvPair[] {
    this.#check();
    this.#sorted ??= [...this.#pairs.values()].sort((a, b) => compareBytes(a.key, b.key));
    return this.#sorted;
  }

  /** Calls `listener` after each change of the copy. Returns a function that removes it. */
  onChange(listener: (mirror: KvMirror) => void): () => void {
    requireFunction(listener, 'onChange');
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Ends it. */
  close(): void {
    this.#end(new ServiceError('CANCELED', 'the mirror was closed'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /** MI4. */
  #check(): void {
    if (this.#controller.signal.aborted) throw this.#controller.signal.reason;
  }

  async #follow(): Promise<void> {
    const { clock } = this.#source.requester.ports;
    while (!this.#controller.signal.aborted) {
      try {
        await this.#read();
        await this.#watch();
      } catch (error) {
        const failure = toServiceError(error);
        if (failure.code === 'COMPACTED') continue; // MI3
        if (this.#source.requester.closed || isLasting(failure)) return this.#end(failure);
        await sleep(clock, READ_AGAIN_MS, this.#controller.signal).catch(() => {});
      }
    }
  }

  async #read(): Promise<void> {
    const pairs = new Map<string, KvPair>();
    let revision = 0;
    for await (const page of this.#source.list().pages()) {
      this.#check();
      for (const pair of page.items) pairs.set(binaryString(pair.key), pair);
      this.#limit(pairs);
      revision = page.revision;
    }
    this.#pairs = pairs;
    this.#changed(revision, true);
  }

  async #watch(): Promise<void> {
    const { requester, span } = this.#source;
    const startRevision = this.#revision + 1;
    this.#changes = new KeyChanges<Changes>(requester, span, {
      startRevision,
      toEvents: (message) => (message.kind === 'events' ? [message] : []),
    });
    try {
      for await (const { events, revision } of this.#changes) {
        for (const { type, kv } of events) {
          const name = binaryString(kv.key);
          if (type === 'put') this.#pairs.set(name, new KvPair(kv));
          else this.#pairs.delete(name);
        }
        this.#limit(this.#pairs);
        this.#changed(revision, events.length > 0);
      }
    } finally {
      this.#changes.close();
    }
    this.#check();
    throw new ServiceError('CANCELED', 'the client is closed');
  }

  #limit({ size }: ReadonlyMap<string, KvPair>): void {
    if (size <= this.#keysMax) return;
    const message = `mirror: there are more than ${this.#keysMax} keys; raise keysMax, or select fewer`;
    this.#end(new ServiceError('RESOURCE_EXHAUSTED', message));
    this.#check();
  }

  /** MI1, MI2. */
  #changed(revision: number, isNew: boolean): void {
    this.#revision = Math.max(this.#revision, revision);
    for (const one of [...this.#waiting]) {
      if (this.#revision < one.revision) continue;
      this.#waiting.delete(one);
      one.resolve();
    }
    if (!isNew) return;
    this.#sorted = undefined;
    for (const listener of [...this.#listeners]) {
      try {
        listener(this);
      } catch (error) {
        this.#source.requester.ports.logger.warn({ error: String(error) }, 'an onChange listener threw an error');
      }
    }
  }

  #end(reason: ServiceError): void {
    if (this.#controller.signal.aborted) return;
    this.#controller.abort(reason);
    this.#changes?.close();
    this.#pairs = new Map();
    this.#sorted = undefined;
    for (const { reject } of this.#waiting) reject(reason);
    this.#waiting.clear();
    this.#listeners.clear();
  }
}
