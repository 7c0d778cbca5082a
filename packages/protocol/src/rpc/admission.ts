import type { ServiceError } from '@remora/base';
import type { GuardedLink, LinkGuard } from './link-guard.ts';
import type { Outbox } from './outbox.ts';

interface AdmissionPorts {
  readonly outbox: Outbox;
  readonly link: Pick<GuardedLink, 'call' | 'refuse'>;
  readonly guard: ((link: GuardedLink) => LinkGuard) | undefined;
  /** The link is open and admitted for the first time. */
  readonly onAdmitted: () => void;
}

/** Whether the calls of a link may leave: always, or when its guard says so (link-guard.ts). */
export class Admission {
  readonly #outbox: Outbox;
  readonly #guard: LinkGuard | undefined;
  readonly #onAdmitted: () => void;
  #held = false;
  /** Calls below this id left before the link was last held (LG2). */
  #heldFromId = 1;
  #admitted = false;
  #over = false;

  constructor({ outbox, link, guard, onAdmitted }: AdmissionPorts) {
    this.#outbox = outbox;
    this.#onAdmitted = onAdmitted;
    this.#guard = guard?.({ ...link, admit: () => this.#admit() });
    if (this.#guard !== undefined) this.#hold(1);
  }

  opened(): void {
    if (this.#guard === undefined) this.#onAdmitted();
    else this.#guard.opened();
  }

  /** LG2. The peer answered the call `id` with this error; `nextId` is the id of the next call. */
  hear({ code }: ServiceError, id: number, nextId: number): void {
    if (this.#guard === undefined || code !== 'UNAUTHENTICATED' || this.#held || id < this.#heldFromId) return;
    this.#hold(nextId);
    this.#guard.refused();
  }

  closed(): void {
    this.#over = true;
    this.#guard?.closed();
  }

  #hold(fromId: number): void {
    this.#held = true;
    this.#heldFromId = fromId;
    this.#outbox.hold();
  }

  #admit(): void {
    if (this.#over) return;
    this.#held = false;
    this.#outbox.release();
    if (this.#admitted) return;
    this.#admitted = true;
    this.#onAdmitted();
  }
}
