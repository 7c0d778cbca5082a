/**
 * Server-sent events. A stream is closed while its tab is hidden, because browsers open at most six connections to one
 * host over HTTP/1.1: hidden tabs would keep others from loading.
 */
import { type Parameters, searchOf } from '../logic/location.ts';
import { unanswered } from './connection.ts';

const REOPEN_MS = 1_000;

export interface StreamOptions {
  readonly path: string;
  /** Read at each opening, so that a stream can continue where it ended. */
  query?(): Parameters;
  /** The names of the events. */
  readonly events: readonly string[];
  event(name: string, data: unknown): void;
  /** `open`: events follow. `closed`: the stream has ended and will be opened again. */
  state?(state: 'open' | 'closed'): void;
}

/** Opens a stream and keeps it open. Returns a function that ends it. */
export function stream(options: StreamOptions): () => void {
  let source: EventSource | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let hasEnded = false;

  const close = (): void => {
    clearTimeout(retry);
    source?.close();
    source = undefined;
  };
  const open = (): void => {
    close();
    if (hasEnded || document.hidden) return;
    const opened = new EventSource(`${options.path}${searchOf(options.query?.() ?? {})}`);
    source = opened;
    opened.onopen = () => options.state?.('open');
    opened.onerror = (event) => {
      // A named event `error` of the stream itself has data; the browser's own has none.
      if (event instanceof MessageEvent) return;
      options.state?.('closed');
      if (opened.readyState !== EventSource.CLOSED) unanswered();
      close();
      retry = setTimeout(open, REOPEN_MS);
    };
    for (const name of options.events) {
      opened.addEventListener(name, (event) => {
        if (source !== opened || !(event instanceof MessageEvent) || typeof event.data !== 'string') return;
        options.event(name, JSON.parse(event.data));
      });
    }
  };
  const onVisible = (): void => {
    if (!document.hidden) return open();
    close();
    options.state?.('closed');
  };

  document.addEventListener('visibilitychange', onVisible);
  open();
  return () => {
    hasEnded = true;
    document.removeEventListener('visibilitychange', onVisible);
    close();
  };
}
