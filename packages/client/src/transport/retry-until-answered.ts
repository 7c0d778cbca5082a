import type { ServiceError } from '@remora/base';
import type { Command } from '@remora/protocol';
import { isLasting, isLeaseGone } from './request-errors.ts';
import type { Requester } from './requester.ts';

/** How long one request id is used; then a new one is taken, as ranges forget ids after a while. */
const ATTEMPT_MS = 30_000;
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

/**
 * Retries an idempotent release or cancel, with growing pauses, until it is answered, the session has ended or the
 * client is closed. A session may last for months, and until it ends nobody could use what was not released. `done`
 * gets an error if the command was given up.
 */
export function retryUntilAnswered(
  { requester, session }: { readonly requester: Requester; readonly session: { readonly alive: boolean } },
  command: Command,
  done: (error: ServiceError | undefined) => void,
): void {
  const { clock } = requester.ports;
  const send = (pauseMs: number): void => {
    requester.sendCommand(command, { timeoutMs: ATTEMPT_MS, untilAnswered: true }, (error) => {
      const isRefused = error?.code === 'UNAUTHENTICATED'; // The credentials may be valid again before the session ends.
      if (error === undefined || (isLasting(error) && !isRefused) || isLeaseGone(error) || isOver()) return done(error);
      clock.setTimer(pauseMs, () => (isOver() ? done(error) : send(Math.min(2 * pauseMs, PAUSE_MAX_MS))));
    });
  };
  const isOver = (): boolean => requester.closed || !session.alive;
  send(PAUSE_MIN_MS);
}
