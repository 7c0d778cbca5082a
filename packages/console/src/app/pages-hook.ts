import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { connection } from '../api/connection.ts';
import { joined, type Part } from '../logic/parts.ts';
import { useStore } from './hooks.ts';

export interface Pages<Row> {
  readonly rows: readonly Row[];
  readonly hasMore: boolean;
  /** More rows follow, and are not read: a tab keeps so many at most. */
  readonly isFull: boolean;
  readonly isLoading: boolean;
  readonly isLoaded: boolean;
  readonly error: unknown;
  more(): void;
  reload(): void;
}

interface State<Row> extends Part<Row> {
  readonly key: string;
  readonly isFull?: boolean;
  readonly parts: number;
  readonly error?: unknown;
}

/** Searches may answer with empty pages although there is more: so many are read before the list says so. */
const EMPTY_PARTS_MAX = 50;

interface Options {
  /** Reads the first page again at this interval, unless further ones are shown. */
  readonly everyMs?: number;
}

/** A list of the API that is read page by page. */
export function usePages<Row>(
  key: string,
  load: (after: string | undefined, signal: AbortSignal) => Promise<Part<Row>>,
  { everyMs }: Options = {},
): Pages<Row> {
  const [state, setState] = useState<State<Row>>({ key, rows: [], parts: 0 });
  const [loading, setLoading] = useState(true);
  const [round, setRound] = useState(0);
  const running = useRef<AbortController | undefined>(undefined);
  const latest = useRef(load);
  latest.current = load;
  const shown = useRef(state);
  shown.current = state;
  const { again } = useStore(connection);

  const read = useCallback(
    async (after: string | undefined): Promise<void> => {
      running.current?.abort();
      const caller = new AbortController();
      running.current = caller;
      setLoading(true);
      try {
        const part = await readRows(latest.current, after, caller.signal);
        if (caller.signal.aborted) return;
        setState((before) => {
          const isFirst = after === undefined || before.key !== key;
          return { key, ...joined(isFirst ? [] : before.rows, part), parts: isFirst ? 1 : before.parts + 1 };
        });
      } catch (error) {
        if (caller.signal.aborted) return;
        setState((before) => ({ ...(before.key === key ? before : { key, rows: [], parts: 0 }), error }));
      }
      setLoading(false);
    },
    [key],
  );

  useEffect(() => {
    void read(undefined);
    return () => running.current?.abort();
  }, [read, round, again]);

  useEffect(() => {
    if (everyMs === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden && shown.current.parts <= 1) void read(undefined);
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs, read]);

  const isCurrent = state.key === key;
  const next = isCurrent ? state.next : undefined;
  return {
    rows: isCurrent ? state.rows : [],
    hasMore: next !== undefined,
    isFull: isCurrent && state.isFull === true,
    isLoading: loading,
    isLoaded: isCurrent && state.parts > 0,
    error: isCurrent ? state.error : undefined,
    more: useCallback(() => {
      if (next !== undefined && !loading) void read(next);
    }, [next, loading, read]),
    reload: useCallback(() => setRound((before) => before + 1), []),
  };
}

async function readRows<Row>(
  load: (after: string | undefined, signal: AbortSignal) => Promise<Part<Row>>,
  after: string | undefined,
  signal: AbortSignal,
): Promise<Part<Row>> {
  let part = await load(after, signal);
  for (let reads = 1; part.rows.length === 0 && part.next !== undefined && reads < EMPTY_PARTS_MAX; reads++) {
    part = await load(part.next, signal);
  }
  return part;
}
