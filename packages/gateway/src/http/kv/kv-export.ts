import { EMPTY_BYTES, toServiceError } from '@remora/base';
import type { EventSource, LineStream } from '../api-types.ts';
import type { KvExportEnd, KvExportLine } from '../json/kv.ts';
import type { RangeCalls } from '../range-calls.ts';
import { errorAnswer } from '../statuses.ts';
import { onlyThese, type Target, wholeNumber } from '../targets.ts';
import { KeyScan } from './key-scan.ts';
import { keysOf, keyValueJson } from './kv-json.ts';

/** Of keys and values that are in memory for one export. */
const EXPORT_PAGE_BYTES = 256 * 1024;
const EXPORT_PAGE_KEYS = 1_000;

type LineSink = Parameters<LineStream>[0];

/**
 * All keys with a prefix at one revision, one a line, and a last line that shows that it is complete.
 *
 * KX1. A page is read when the client has taken the one before, so that memory stays bounded for any number of keys.
 */
export function kvExport(calls: RangeCalls, { query }: Target): LineStream {
  onlyThese(query, ['prefix', 'revision']);
  const { key, end } = keysOf(query.get('prefix') ?? EMPTY_BYTES);
  const place = { from: key, revision: wholeNumber(query, 'revision', 0) };
  return (sink) => {
    const closed = new AbortController();
    const drained = new Drained();
    const scan = new KeyScan(calls, end, place, closed.signal);
    sendAll(scan, sink, { drained, signal: closed.signal }).then(
      () => sink.end(),
      (thrown: unknown) => {
        if (closed.signal.aborted) return;
        const answer = errorAnswer(toServiceError(thrown));
        sink.end({ answer, line: answer.body as object });
      },
    );
    return {
      onDrain: () => drained.happened(),
      onClose: () => {
        closed.abort();
        drained.happened();
      },
    } satisfies EventSource;
  };
}

async function sendAll(
  scan: KeyScan,
  sink: LineSink,
  { drained, signal }: { readonly drained: Drained; readonly signal: AbortSignal },
): Promise<void> {
  let keys = 0;
  const send = async (line: KvExportLine | KvExportEnd): Promise<void> => {
    const next = drained.next();
    if (!sink.write(line)) await next; // KX1
    signal.throwIfAborted();
  };
  while (!scan.isOver) {
    for (const kv of await scan.read({ limit: EXPORT_PAGE_KEYS, bytes: EXPORT_PAGE_BYTES, keysOnly: false })) {
      await send(keyValueJson(kv));
      keys++;
    }
  }
  await send({ end: { keys, revision: scan.revision } });
}

/** Lets one waiter wait until the client has taken all that was written. */
class Drained {
  #resolve = (): void => {};

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  happened(): void {
    this.#resolve();
  }
}
