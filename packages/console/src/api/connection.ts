/**
 * Whether the node that serves this page answers. After a request without an answer, a probe repeats until the node
 * answers again; then `again` grows, and everything on the page is read anew.
 */
import { Store } from '../logic/store.ts';

export interface Connection {
  readonly isUp: boolean;
  /** Since when the node has not answered; ms since 1970 by the browser's clock. */
  readonly lostAt?: number;
  /** How often the connection has come back. */
  readonly again: number;
}

const PROBE_EVERY_MS = 1_500;
const PROBE_TIMEOUT_MS = 4_000;
/** Any answer of this path shows that the node is there. */
const PROBE = '/v1/whoami';

export const connection = new Store<Connection>({ isUp: true, again: 0 });

export function answered(): void {
  const { isUp, again } = connection.get();
  if (!isUp) connection.set({ isUp: true, again: again + 1 });
}

export function unanswered(): void {
  const { isUp, again } = connection.get();
  if (!isUp) return;
  connection.set({ isUp: false, again, lostAt: Date.now() });
  setTimeout(probe, PROBE_EVERY_MS);
}

async function probe(): Promise<void> {
  try {
    await fetch(PROBE, { cache: 'no-store', signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    answered();
  } catch {
    setTimeout(probe, PROBE_EVERY_MS);
  }
}
