import type { WatchControl } from '../backend.ts';

/** The state of a watch that a round needs. */
export interface ProgressWatch {
  /** The start revision that the client asked for; 0: from the next change on. */
  readonly startRevision: number;
  readonly control: Pick<WatchControl, 'progress'> | undefined;
  /** Everything up to here was sent. */
  reached: number;
  /** It has a question without an answer. */
  asked: boolean;
  /** Ask again after its answer, which is one to an earlier question. */
  askAgain: boolean;
  /** The round waits for its answer. */
  owes: boolean;
}

/**
 * Answers the progress requests of one stream (watch id -1), as etcd does since 3.5.8
 * (`progressIfSync` in `server/storage/mvcc/watchable_store.go`; etcd-io/etcd#15220).
 *
 * P1. An answer at revision R promises that no event at or below R follows on the stream. So it is sent when every
 *     watch of the stream has reached R: announced watches, watches that are still being created, and watches whose
 *     create came after the request. Watches whose create comes after the answer may start in the past.
 * P2. A watch answers when it is caught up, once per question. Its answer is at least every revision that was
 *     acknowledged before the question (`WatchControl.progress`). All watches are asked after the request came. So R is
 *     at least every revision that was acknowledged before the request, and answers never go back.
 * P3. There is one round at a time. Requests that come during a round are answered together by one further round (P2).
 *     So a stream keeps two flags, however many requests it gets.
 * P4. A request on a stream without watches is dropped, as in etcd. So is one on a stream with a watch that starts at a
 *     later revision than R + 1: its client would resume that watch behind R, too early.
 * P5. A round does not wait for a watch that has ended. A client that creates watches faster than they catch up gets no
 *     answer until it pauses, as in etcd.
 */
export class StreamProgress {
  readonly #watches: () => Iterable<ProgressWatch>;
  readonly #announce: (revision: number) => void;
  #inFlight = false;
  #further = false;

  /** `watches` returns all watches that may still report events. */
  constructor(watches: () => Iterable<ProgressWatch>, announce: (revision: number) => void) {
    this.#watches = watches;
    this.#announce = announce;
  }

  request(): void {
    if (this.#inFlight)
      this.#further = true; // P3
    else this.#begin();
  }

  #begin(): void {
    this.#inFlight = true;
    const watches = [...this.#watches()];
    for (const watch of watches) watch.owes = true;
    for (const watch of watches) ask(watch);
    this.sendDue();
  }

  /** P1. A watch was created. */
  joined(watch: ProgressWatch): void {
    if (!this.#inFlight) return;
    watch.owes = true;
    ask(watch);
  }

  /** P2. A watch has answered. */
  answered(watch: ProgressWatch): void {
    watch.asked = false;
    if (watch.askAgain) {
      watch.askAgain = false;
      return ask(watch);
    }
    watch.owes = false;
    this.sendDue();
  }

  /** Sends the answer that is due, if it is; called when a watch has answered or ended. */
  sendDue(): void {
    if (!this.#inFlight) return;
    let reached = Number.POSITIVE_INFINITY;
    let first = 0;
    for (const watch of this.#watches()) {
      if (watch.owes) return;
      reached = Math.min(reached, watch.reached);
      first = Math.max(first, watch.startRevision);
    }
    this.#inFlight = false;
    if (reached < Number.POSITIVE_INFINITY && first <= reached + 1) this.#announce(reached); // P4
    if (!this.#further) return;
    this.#further = false;
    this.#begin();
  }

  /** The stream has ended. */
  stop(): void {
    this.#inFlight = false;
    this.#further = false;
  }
}

/** Asks a watch for its progress. A question that is in flight already was asked too early (P2). */
export function ask(watch: ProgressWatch): void {
  if (watch.asked) {
    watch.askAgain = true;
    return;
  }
  watch.asked = true;
  watch.control?.progress();
}
