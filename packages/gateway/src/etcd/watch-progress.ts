import type { WatchControl } from '../backend.ts';

/** What a round needs to know of a watch. */
export interface ProgressWatch {
  /** The first revision that the client asked for; 0: from now on. */
  readonly startRevision: number;
  readonly control: Pick<WatchControl, 'progress'> | undefined;
  /** Everything up to here was sent. */
  reached: number;
  /** Asked how far it is, and has not answered yet. */
  asked: boolean;
  /** To be asked again when it has answered: that answer is one to an earlier question. */
  askAgain: boolean;
  /** The round waits for its answer. */
  owes: boolean;
}

/**
 * The answers to the progress requests of one stream (watch id -1), in the manner of etcd since 3.5.8
 * (`progressIfSync` in `server/storage/mvcc/watchable_store.go`; etcd-io/etcd#15220).
 *
 * P1. An answer at revision R promises that no event at or below R follows on the stream. So it is sent when every watch
 *     of the stream has answered that it is at R or above: those that are announced, those that are still being created,
 *     and those that were asked for after the request. Watches that are asked for after the answer may begin in the past.
 * P2. A watch answers when it is caught up, once per question, and what it names is at least every revision that was
 *     acknowledged before the question (`WatchControl.progress`). All watches are asked after the request came. So R is
 *     at least every revision that was acknowledged before the request, and answers never go back.
 * P3. One round is under way at a time. Requests that come meanwhile are answered together, by one further round (P2).
 *     So a stream keeps two flags, however many requests it gets.
 * P4. A stream without watches answers nothing, nor does one with a watch whose first revision is further away than the
 *     next: clients would resume that watch behind R, too early. The request is dropped, as etcd drops it.
 * P5. A watch that ends is not waited for. A client that creates watches faster than they catch up is not answered before
 *     it pauses; etcd answers such a client as little.
 */
export class StreamProgress {
  readonly #watches: () => Iterable<ProgressWatch>;
  readonly #announce: (revision: number) => void;
  #inFlight = false;
  #further = false;

  /** `watches`: all that may still report events. */
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

  /** The stream is over. */
  stop(): void {
    this.#inFlight = false;
    this.#further = false;
  }
}

/** Asks a watch how far it is. A question that is under way already was asked too early (P2). */
export function ask(watch: ProgressWatch): void {
  if (watch.asked) {
    watch.askAgain = true;
    return;
  }
  watch.asked = true;
  watch.control?.progress();
}
