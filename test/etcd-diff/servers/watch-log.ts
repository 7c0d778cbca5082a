/**
 * The watches of one run on one server, and what they have told.
 *
 * WL1. A stream keeps etcd's rules by itself, whatever the other server says: events come in the order of their
 *      revisions, in messages with headers at or above them, and none at or below a revision that progress was told of
 *      before. Events of one revision come in one message, unless it says that it is a fragment.
 */
import type { WatchResponse } from '@remora/protocol/etcd';
import { type Answer, Exact, eventAnswer, headerOf } from '../judge/answers.ts';
import type { WatchStep } from '../requests/requests.ts';
import { watchRequest } from './encode.ts';
import type { Names, Server, WatchRequests } from './server.ts';

export interface Watched {
  readonly step: WatchStep;
  readonly id: bigint;
  readonly events: Answer[];
  /** Of the last event. */
  reached: number;
  /** WL1. Of the last progress that was told of since its creation was asked for. */
  progress: number;
  /** More of the last revision may come: the message was a fragment. */
  isParted: boolean;
  /** How it ended; undefined: it goes on. */
  end: Answer | undefined;
  /** Its end was asked for. */
  canceled: boolean;
}

interface Creation {
  readonly step: WatchStep;
  progress: number;
  done(answer: Answer): void;
}

interface Stream {
  readonly requests: WatchRequests;
  readonly creating: Creation[];
  readonly asking: ((message: WatchResponse) => void)[];
  readonly watches: Map<bigint, Watched>;
  error: string | undefined;
}

/** For an answer that must come, on a machine that is busy. */
const PATIENCE_MS = 30_000;

export class WatchLog {
  readonly #server: Server;
  readonly #names: Names;
  readonly #keepsProgress: boolean;
  readonly #streams = new Map<number, Stream>();
  readonly #watches = new Map<number, Watched>();
  /** WL1. What broke it. */
  readonly #faults: string[] = [];
  readonly #waiting = new Set<() => void>();
  #closed = false;

  /** `keepsProgress` is false for etcd 3.4.23: its progress overtakes events (etcd-io/etcd#15220). */
  constructor(server: Server, names: Names, { keepsProgress }: { readonly keepsProgress: boolean }) {
    this.#server = server;
    this.#names = names;
    this.#keepsProgress = keepsProgress;
  }

  get watches(): ReadonlyMap<number, Watched> {
    return this.#watches;
  }

  /** WL1. */
  get faults(): readonly string[] {
    return this.#faults;
  }

  async create(step: WatchStep): Promise<Answer> {
    const stream = this.#stream(step.stream);
    const answer = new Promise<Answer>((resolve) => {
      stream.creating.push({ step, progress: 0, done: resolve });
    });
    stream.requests.write({ requestUnion: { $case: 'createRequest', value: watchRequest(step, this.#names) } });
    return this.#inTime(stream, answer);
  }

  /** Null: there is no such watch. */
  async cancel(watch: number): Promise<Answer> {
    const watched = this.#watches.get(watch);
    if (watched === undefined || watched.end !== undefined) return null;
    const stream = this.#stream(watched.step.stream);
    watched.canceled = true;
    stream.requests.write({ requestUnion: { $case: 'cancelRequest', value: { watchId: watched.id } } });
    await this.#until(() => watched.end !== undefined || stream.error !== undefined);
    return watched.end ?? { error: stream.error ?? 'not canceled in time' };
  }

  progress(number: number): Promise<Answer> {
    const stream = this.#stream(number);
    const answer = new Promise<Answer>((resolve) => {
      stream.asking.push(({ header }) => resolve({ header: headerOf(header) }));
    });
    stream.requests.write({ requestUnion: { $case: 'progressRequest', value: {} } });
    return this.#inTime(stream, answer);
  }

  /** Resolves to false when the watch does not get there in time. */
  reached(watch: number, revision: number): Promise<boolean> {
    const watched = this.#watches.get(watch);
    if (watched === undefined) return Promise.resolve(false);
    return this.#until(() => watched.reached >= revision || watched.end !== undefined);
  }

  ended(watch: number): Promise<boolean> {
    return this.#until(() => this.#watches.get(watch)?.end !== undefined);
  }

  close(): void {
    this.#closed = true;
    for (const { requests } of this.#streams.values()) requests.close();
  }

  #stream(number: number): Stream {
    const known = this.#streams.get(number);
    if (known !== undefined) return known;
    const stream: Stream = {
      ...{ creating: [], asking: [], watches: new Map(), error: undefined },
      requests: this.#server.watch({
        message: (message) => this.#message(stream, message),
        ended: (error) => {
          stream.error = error ?? 'the server ended the stream';
          if (!this.#closed) this.#fault(`stream ${number} ended: ${stream.error}`);
        },
      }),
    };
    this.#streams.set(number, stream);
    return stream;
  }

  #message(stream: Stream, message: WatchResponse): void {
    if (message.created) this.#created(stream, message);
    else if (message.watchId === -1n) {
      const progress = message.header?.revision ?? 0;
      for (const watch of [...stream.creating, ...stream.watches.values()]) watch.progress = progress;
      stream.asking.shift()?.(message);
    } else this.#ofWatch(stream, message);
    for (const look of [...this.#waiting]) look();
  }

  #created(stream: Stream, { header, watchId, canceled, cancelReason }: WatchResponse): void {
    const creation = stream.creating.shift();
    if (creation === undefined) return this.#fault('a watch was created that nobody asked for');
    const { step, progress, done } = creation;
    const isOwn = (step.id ?? 0n) === 0n && watchId >= 0n;
    const id = isOwn ? 'chosen by the server' : Number(watchId);
    const answer = { header: headerOf(header), id, canceled, reason: cancelReason };
    if (stream.watches.has(watchId)) this.#fault(`watch ${step.watch} has the id ${watchId} of another one`);
    const watched: Watched = {
      ...{ step, id: watchId, events: [], reached: 0, progress, isParted: false, canceled: false },
      end: canceled ? answer : undefined,
    };
    this.#watches.set(step.watch, watched);
    if (!canceled) stream.watches.set(watchId, watched);
    done(answer);
  }

  #ofWatch(stream: Stream, message: WatchResponse): void {
    const watched = stream.watches.get(message.watchId);
    if (watched === undefined) return this.#fault(`a message for ${message.watchId}, which is no watch`);
    this.#check(watched, message);
    for (const event of message.events) {
      watched.reached = event.kv?.modRevision ?? 0;
      watched.events.push(eventAnswer(event, this.#names.nameOf));
    }
    if (message.events.length > 0) watched.isParted = message.fragment;
    if (!message.canceled) return;
    stream.watches.delete(message.watchId);
    watched.end = {
      header: headerOf(message.header),
      reason: message.cancelReason,
      compacted: new Exact(message.compactRevision),
    };
  }

  /** WL1. */
  #check({ step, reached, progress, isParted }: Watched, { header, events }: WatchResponse): void {
    const name = `watch ${step.watch}`;
    const revision = header?.revision ?? 0;
    let before = reached;
    for (const [i, { kv }] of events.entries()) {
      const at = kv?.modRevision ?? 0;
      if (at < before) this.#fault(`${name} told of ${at} after ${before}`);
      if (i === 0 && at === before && !isParted) this.#fault(`${name} told of ${at} in two messages`);
      if (at > revision) this.#fault(`${name} told of ${at} in a message of ${revision}`);
      if (this.#keepsProgress && at <= progress) this.#fault(`${name} told of ${at} after progress ${progress}`);
      before = at;
    }
  }

  #fault(text: string): void {
    this.#faults.push(text);
    for (const look of [...this.#waiting]) look();
  }

  async #inTime(stream: Stream, answer: Promise<Answer>): Promise<Answer> {
    let told: Answer | undefined;
    void answer.then((value) => {
      told = value;
      for (const look of [...this.#waiting]) look();
    });
    await this.#until(() => told !== undefined || stream.error !== undefined);
    return told ?? { error: stream.error ?? `no answer within ${PATIENCE_MS} ms` };
  }

  /** Whether it comes to be in time. */
  #until(isSo: () => boolean): Promise<boolean> {
    if (isSo()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (result: boolean): void => {
        clearTimeout(late);
        this.#waiting.delete(look);
        resolve(result);
      };
      const look = (): void => {
        if (isSo()) end(true);
      };
      const late = setTimeout(() => end(false), PATIENCE_MS);
      this.#waiting.add(look);
    });
  }
}
