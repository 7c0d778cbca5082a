import { type Clock, type Timer, toServiceError } from '@remora/base';
import type { LiveProblemJson, LiveTopic } from '../json/history.ts';
import type { LiveEvent, LiveFeed, LiveStream } from './live-stream.ts';

/** Reads a topic from the cluster. */
export interface LiveSource<State extends object = object> {
  readonly topic: LiveTopic;
  /** How long to wait from one reading to the next; at least a second. */
  readonly everyMs: () => number;
  read(): Promise<State>;
  /** The state as an event. */
  whole(state: State): object;
  /** What has changed, as an event; undefined: nothing. */
  changes(before: State, now: State): object | undefined;
}

/** A part of the interval that passes between two readings, however long a reading takes. */
const REST_SHARE = 0.25;

/**
 * One topic of live data on this gateway.
 *
 * TF1. However many clients listen, the topic is read once for all of them. While none does, nothing is read or kept.
 * TF2. The first event of a client is the whole state; later ones have what changed since.
 * TF3. A reading that fails is a `problem`, told once until the topic can be read again. Then its whole state follows.
 */
export class TopicFeed<State extends object> implements LiveFeed {
  readonly topic: LiveTopic;
  readonly #clock: Clock;
  readonly #source: LiveSource<State>;
  readonly #streams = new Set<LiveStream>();
  #timer: Timer | undefined;
  /** Readings of an earlier audience do not count. */
  #audience = 0;
  #known: { readonly state: State; readonly atMs: number } | undefined;
  #problem: LiveProblemJson | undefined;

  constructor(clock: Clock, source: LiveSource<State>) {
    this.topic = source.topic;
    this.#clock = clock;
    this.#source = source;
  }

  subscribe(stream: LiveStream): void {
    this.#streams.add(stream);
    const { current } = this;
    if (this.#streams.size === 1) void this.#poll(++this.#audience);
    else if (current !== undefined) stream.tell(this, current);
  }

  unsubscribe(stream: LiveStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    this.#timer?.cancel();
    this.#audience++;
    this.#known = undefined;
    this.#problem = undefined;
  }

  get current(): LiveEvent | undefined {
    if (this.#problem !== undefined) return { event: 'problem', data: this.#problem };
    return this.#known && this.#event(this.#source.whole(this.#known.state), this.#known.atMs);
  }

  #event(data: object, atMs: number): LiveEvent {
    return { event: this.topic, data: { atMs, ...data } };
  }

  /** TF1. */
  async #poll(audience: number): Promise<void> {
    const beganMs = this.#clock.monotonicMs();
    let answer: { readonly state: State } | { readonly error: unknown };
    try {
      answer = { state: await this.#source.read() };
    } catch (error) {
      answer = { error };
    }
    if (audience !== this.#audience) return;
    const news = 'state' in answer ? this.#learn(answer.state) : this.#failed(answer.error);
    if (news !== undefined) for (const stream of [...this.#streams]) stream.tell(this, news);
    if (audience !== this.#audience) return; // Nobody may look any more.
    const everyMs = this.#source.everyMs();
    const restMs = Math.max(everyMs * REST_SHARE, everyMs - (this.#clock.monotonicMs() - beganMs));
    this.#timer = this.#clock.setTimer(restMs, () => void this.#poll(audience));
  }

  /** TF2. */
  #learn(state: State): LiveEvent | undefined {
    const atMs = Math.round(this.#clock.wallMs());
    const before = this.#problem === undefined ? this.#known : undefined;
    this.#problem = undefined;
    const data = before === undefined ? this.#source.whole(state) : this.#source.changes(before.state, state);
    if (data === undefined) return undefined;
    this.#known = { state, atMs };
    return this.#event(data, atMs);
  }

  /** TF3. */
  #failed(thrown: unknown): LiveEvent | undefined {
    const { code, message } = toServiceError(thrown);
    if (this.#problem?.code === code) return undefined;
    this.#problem = { atMs: Math.round(this.#clock.wallMs()), topic: this.topic, code, message };
    return { event: 'problem', data: this.#problem };
  }
}
