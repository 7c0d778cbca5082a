/**
 * Abort signals that go when nobody has what they depend on any more.
 *
 * Node keeps a signal of `AbortSignal.any` for all to see as long as somebody listens to it and nothing has aborted it.
 * In a real process whoever listens comes to an end; in a simulated one that was killed nobody does, and Node would
 * keep the whole world around it: some 15 MB for a seed in which snapshots were under way.
 */

/** From now on a signal that depends on others is held by those alone. */
export function holdSignalsBySources(): void {
  AbortSignal.any = (sources: Iterable<AbortSignal>): AbortSignal => {
    const any = new AbortController();
    for (const source of sources) {
      if (source.aborted) any.abort(source.reason);
      else source.addEventListener('abort', () => any.abort(source.reason), { once: true });
    }
    return any.signal;
  };
}
