/** Aborted with the first of several signals, and for its reason. */
export interface JoinedSignal {
  readonly signal: AbortSignal;
  /** Nobody needs it any more: the others know nothing of it from then on. */
  letGo(): void;
}

/**
 * As `AbortSignal.any`, whose signals Node 20 keeps in memory, once somebody listens to them, for as long as any of
 * `signals` lives: that of a node that runs for months.
 */
export function joinSignals(signals: readonly AbortSignal[]): JoinedSignal {
  const joined = new AbortController();
  const listening = new Map<AbortSignal, () => void>();
  const letGo = (): void => {
    for (const [signal, abort] of listening) signal.removeEventListener('abort', abort);
    listening.clear();
  };
  for (const signal of signals) {
    if (joined.signal.aborted) break;
    const abort = (): void => {
      letGo();
      joined.abort(signal.reason);
    };
    if (signal.aborted) abort();
    else {
      listening.set(signal, abort);
      signal.addEventListener('abort', abort, { once: true });
    }
  }
  return { signal: joined.signal, letGo };
}
