import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { connection } from '../api/connection.ts';
import { messageOf } from '../api/errors.ts';
import type { Readable } from '../logic/store.ts';

export function useStore<Value>(store: Readable<Value>): Value {
  const [, redraw] = useState(0);
  useEffect(() => {
    const drawn = store.get();
    const end = store.subscribe(() => redraw((times) => times + 1));
    if (!Object.is(drawn, store.get())) redraw((times) => times + 1);
    return end;
  }, [store]);
  return store.get();
}

export interface Resource<Value> {
  /** The last answer; it stays while the next one is awaited, and after an error. */
  readonly data: Value | undefined;
  readonly error: Error | undefined;
  readonly isLoading: boolean;
  reload(): void;
}

interface ResourceOptions {
  /** Reads again at this interval while the tab is visible. Default: never. */
  readonly everyMs?: number;
}

/**
 * Reads something of the API, again when `key` changes, when `reload` is called, and when a lost connection is back. An
 * answer to an earlier key is dropped. `key` undefined: reads nothing.
 */
export function useResource<Value>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<Value>,
  { everyMs }: ResourceOptions = {},
): Resource<Value> {
  const [state, setState] = useState<State<Value>>({ key, isLoading: key !== undefined });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const { again } = useStore(connection);

  useEffect(() => {
    if (key === undefined) return setState({ key, isLoading: false });
    const caller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      if (!document.hidden) {
        try {
          const data = await latest.current(caller.signal);
          setState({ key, data, isLoading: false });
        } catch (error) {
          if (caller.signal.aborted) return;
          setState((before) => ({ ...ofKey(before, key), error: asError(error), isLoading: false }));
        }
      }
      if (everyMs !== undefined && !caller.signal.aborted) timer = setTimeout(read, everyMs);
    };
    setState((before) => ({ ...ofKey(before, key), isLoading: true }));
    void read();
    return () => {
      caller.abort();
      clearTimeout(timer);
    };
  }, [key, everyMs, round, again]);

  const reload = useCallback(() => setRound((before) => before + 1), []);
  const shown = ofKey(state, key);
  return { data: shown.data, error: shown.error, isLoading: shown.isLoading, reload };
}

interface State<Value> {
  readonly key: string | undefined;
  readonly data?: Value;
  readonly error?: Error;
  readonly isLoading: boolean;
}

function ofKey<Value>(state: State<Value>, key: string | undefined): State<Value> {
  return state.key === key ? state : { key, isLoading: key !== undefined };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(messageOf(error));
}

/** Returns the value once it has not changed for a while: for search as you type. */
export function useSettled<Value>(value: Value, ms = 200): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
