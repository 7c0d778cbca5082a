import { type Logger, ServiceError } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import { requireFunction } from '../options/option-kinds.ts';
import { shown } from '../options/options.ts';
import { idText, printable } from '../values/printable.ts';

/** What happened to a session of the client, and so to all locks that belong to it. */
export interface ClientEvent {
  /** The id of the session, as `remora session ls` prints it. */
  readonly session: string;
  /** Why; for `lost` only. */
  readonly reason?: ServiceError;
}

/**
 * `suspended`: heartbeats of a session are not answered; it still holds its locks, and loses them if that lasts.
 * `resumed`: they are answered again. `lost`: it has expired or may have, so its locks are lost.
 */
export type ClientEventName = 'suspended' | 'resumed' | 'lost';

export type ClientListener = (event: ClientEvent) => void;

const NAMES: readonly ClientEventName[] = ['suspended', 'resumed', 'lost'];

/**
 * CE1. The events of one session come in order: `suspended` and `resumed` by turns, and `lost` last, once. A session
 *      that is closed has no further events.
 * CE2. A listener that throws harms nobody: its error is logged.
 */
export class ClientEvents {
  readonly #logger: Logger;
  readonly #onEvent: (name: ClientEventName) => void;
  readonly #listeners = new Map<ClientEventName, Set<ClientListener>>();

  /** `onEvent` is called for each event, for metrics. */
  constructor(logger: Logger, onEvent: (name: ClientEventName) => void) {
    this.#logger = logger;
    this.#onEvent = onEvent;
  }

  /** Returns a function that removes the listener. @throws ServiceError INVALID_ARGUMENT */
  on(name: ClientEventName, listener: ClientListener): () => void {
    if (!NAMES.includes(name)) {
      throw new ServiceError('INVALID_ARGUMENT', `on: expected one of ${NAMES.join(', ')}, got ${shown(name)}`);
    }
    requireFunction(listener, 'on');
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  emit(name: ClientEventName, { lease }: SessionRef, reason?: ServiceError): void {
    this.#onEvent(name);
    const event = printable({ session: idText(lease) });
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      try {
        listener(reason === undefined ? event : { ...event, reason });
      } catch (error) {
        this.#logger.warn({ error: String(error), event: name }, 'a listener of the client threw an error');
      }
    }
  }
}
