/** Reports to people which holders a command waits for. */
import { nodeClock } from '@remora/base';
import type { RemoraClient } from 'remora';
import { printableText } from '../format/bytes-text.ts';
import { aborted, type Shell } from '../shell.ts';

export interface Awaited {
  readonly name: string;
  readonly namespace: string;
}

/** A lock that is granted within this time needs no message. */
const SILENT_MS = 500;
/** The time limit of the look-up for the message, so that it does not delay the command itself. */
const LOOK_MS = 1_000;

/**
 * Prints one line that the command waits for a lock, unless the wait is over soon. Returns a function to call when it
 * is over.
 */
export function tellOfWait(client: RemoraClient, lock: Awaited, shell: Shell): () => void {
  const over = new AbortController();
  const timer = nodeClock().setTimer(SILENT_MS, async () => {
    const held = await heldByText(client, lock, over.signal);
    if (!over.signal.aborted) shell.err(`remora: waiting for ${lock.name}${held}`);
  });
  return () => {
    timer.cancel();
    over.abort();
  };
}

/** `, held by …`; empty if the lock has no holder any more, or if that is not known soon. */
export async function heldByText(client: RemoraClient, lock: Awaited, signal: AbortSignal): Promise<string> {
  const late = aborted(AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)]));
  const looked = look(client, lock).catch(() => undefined);
  return (await Promise.race([looked, late])) ?? '';
}

async function look(client: RemoraClient, { name, namespace }: Awaited): Promise<string | undefined> {
  const state = await client.locks.show(name, { namespace });
  const holder = state?.holders[0];
  if (state === undefined || holder === undefined) return undefined;
  const { lease } = holder.owner.session;
  const attributes = (await client.sessions.show(lease))?.attributes ?? {};
  const where = ['host', 'pid'].flatMap((key) => {
    const value = attributes[key];
    return value === undefined ? [] : [`${key} ${printableText(value)}`];
  });
  const who = [`session ${lease.toString(16)}`, ...where].join(', ');
  const more = state.holderCount > 1 ? ` and ${state.holderCount - 1} more` : '';
  return `, held by ${who} since ${new Date(holder.lockTimeMs).toISOString()}${more}`;
}
