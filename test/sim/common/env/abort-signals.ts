/**
 * Makes abort signals collectable once their sources are.
 *
 * Node keeps a signal of `AbortSignal.any` referenced as long as it has a listener and has not aborted. In a real
 * process every listener ends; in a killed simulated one it does not, and Node would keep the whole world in memory:
 * about 15 MB for a seed with snapshots in progress.
 */

/** From now on only its sources keep a dependent signal in memory. */
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
