import type { ServiceError } from '@remora/base';
import type { Command } from '@remora/protocol';
import { isLasting, isLeaseGone } from './request-errors.ts';
import type { Requester } from './requester.ts';

/** How long it is sent under one id; then it is given another one, as nothing remembers an id for ever. */
const ATTEMPT_MS = 30_000;
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

/**
 * Sends a command that lets go of something, and may be applied twice without harm, until it is answered: with growing
 * pauses, for as long as the session lives to which that belongs, and the client is open. A session may live for months: what
 * is not asked for again would be held for nobody until it ends. `done` is told the error of what can no longer be sent.
 */
export function retryUntilAnswered(
  { requester, session }: { readonly requester: Requester; readonly session: { readonly alive: boolean } },
  command: Command,
  done: (error: ServiceError | undefined) => void,
): void {
  const { clock } = requester.ports;
  const send = (pauseMs: number): void => {
    requester.sendCommand(command, { timeoutMs: ATTEMPT_MS, untilAnswered: true }, (error) => {
      if (error === undefined || isLasting(error) || isLeaseGone(error) || isOver()) return done(error);
      clock.setTimer(pauseMs, () => (isOver() ? done(error) : send(Math.min(2 * pauseMs, PAUSE_MAX_MS))));
    });
  };
  const isOver = (): boolean => requester.closed || !session.alive;
  send(PAUSE_MIN_MS);
}
