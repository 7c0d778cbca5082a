import { type Bytes, EMPTY_BYTES, ServiceError, toServiceError } from '@remora/base';
import type { KeyValue, Query, QueryResult } from '@remora/protocol';
import type { Asked, Backend, BackendReply } from '../../backend.ts';

export interface KeyPage {
  readonly kvs: readonly KeyValue[];
  /** The revision that all pages show. */
  readonly revision: number;
}

/** Who asks, and for how long. */
export interface Asking extends Asked {
  readonly signal: AbortSignal;
}

const PAGE_BYTES = 1024 * 1024;
/** A page that takes longer, because no leader answers, ends the reading. */
const PAGE_TIMEOUT_MS = 10_000;

/**
 * Reads all plain keys in their order, page by page, as of one revision; 0: the newest. The borders of pages follow
 * from ranges and sizes, so nothing that is made of the pages may depend on them.
 *
 * @throws {ServiceError} COMPACTED or FUTURE_REVISION; COMPACTED also after some pages, if the revision is compacted
 *     meanwhile. CANCELED when the signal aborts.
 */
export async function* plainKeyPages(
  backend: Backend,
  { revision, ...asking }: Asking & { readonly revision: number },
): AsyncGenerator<KeyPage, undefined> {
  let at = revision;
  for (let key: Bytes | undefined = EMPTY_BYTES; key !== undefined; ) {
    const query: Query = { type: 'scan', key, end: EMPTY_BYTES, revision: at, bytes: PAGE_BYTES };
    const { result, revision: newest } = await asked(backend, query, asking);
    if (result.type !== 'scan') throw new ServiceError('INTERNAL', `a scan was answered with ${result.type}`);
    if (at === 0) at = newest;
    yield { kvs: result.kvs, revision: at };
    key = result.next;
  }
}

/** Asks the backend, as a promise that rejects when the signal aborts. */
export function asked(
  backend: Backend,
  query: Query,
  { signal, principal }: Asking,
): Promise<BackendReply<QueryResult>> {
  return new Promise((resolve, reject) => {
    let cancel = (): void => {};
    const onAbort = (): void => {
      cancel();
      reject(new ServiceError('CANCELED', 'the caller has given up'));
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    // A backend may answer before it returns.
    cancel = backend.query(query, { timeoutMs: PAGE_TIMEOUT_MS, principal }, (error, reply) => {
      signal.removeEventListener('abort', onAbort);
      if (reply === undefined) reject(toServiceError(error));
      else resolve(reply);
    });
  });
}
