import { identityOf, type JsonBytes } from './bytes.ts';

interface Queue {
  readonly waiterCount: number;
  /** Callers that wait at the barrier. */
  readonly passing?: number;
}

export function queueLength({ waiterCount, passing = 0 }: Queue): number {
  return waiterCount + passing;
}

/** The locks with the longest queues first; those of one length stay in their order. */
export function longestQueueFirst<Lock extends Queue>(locks: readonly Lock[]): readonly Lock[] {
  return [...locks].sort((a, b) => queueLength(b) - queueLength(a));
}

/** What Enter in the search opens: the lock of exactly that name, or else the first whose name contains the text. */
export function foundBy<Lock extends { readonly name: JsonBytes }>(
  text: string,
  locks: readonly Lock[],
): Lock | undefined {
  if (text === '') return undefined;
  const exact = locks.find(({ name }) => identityOf(name) === identityOf(text));
  return exact ?? locks.find(({ name }) => typeof name === 'string' && name.includes(text));
}
