/** A signal that aborts with the first of several signals, and with its reason. */
export interface JoinedSignal {
  readonly signal: AbortSignal;
  /** The signal is no longer needed: removes it from the others. */
  letGo(): void;
}

/**
 * Like `AbortSignal.any`. In Node 20 the signals of that function stay in memory, once they have a listener, for as
 * long as any of `signals` lives: months in the case of a node.
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
