/** Calls about plain keys. */
import type {
  KeyChangedDetails,
  KeyJson,
  KeyValueJson,
  KvAnswer,
  KvDeleteAnswer,
  KvHistoryAnswer,
  KvImportAnswer,
  KvListAnswer,
  KvPutAnswer,
  KvTreeAnswer,
} from '@remora/gateway/http/json/kv';
import { isPathSafe, type JsonBytes, percentEncoded } from '../logic/bytes.ts';
import { randomId } from '../logic/random-id.ts';
import { call, get, send } from './client.ts';
import { ApiError, errorOf } from './errors.ts';

export const SEPARATOR = '/';
const PAGE = 200;
const TRANSFER_TIMEOUT_MS = 300_000;

export function tree(prefix: JsonBytes, after: string | undefined, signal: AbortSignal): Promise<KvTreeAnswer> {
  return get('/v1/kv-tree', { prefix, separator: SEPARATOR, after, limit: PAGE }, signal);
}

export interface KeySearch {
  readonly prefix: JsonBytes;
  readonly contains: string;
}

export function search(
  { prefix, contains }: KeySearch,
  after: string | undefined,
  signal: AbortSignal,
): Promise<KvListAnswer> {
  return get('/v1/kv', { prefix, contains, after, values: 'false', limit: PAGE }, signal);
}

/** Returns undefined if the key does not exist. */
export async function read(
  key: JsonBytes,
  revision: number | undefined,
  signal: AbortSignal,
): Promise<KvAnswer | undefined> {
  try {
    return await get<KvAnswer>(keyPath('kv', key), { revision }, signal);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

export function history(key: JsonBytes, after: string | undefined, signal: AbortSignal): Promise<KvHistoryAnswer> {
  return get(keyPath('kv-history', key), { after, limit: 50 }, signal);
}

/** Undefined for keys that cannot be in a path. */
export function historyPath(key: JsonBytes): string | undefined {
  return isPathSafe(key) ? keyPath('kv-history', key) : undefined;
}

export interface Write {
  readonly value: JsonBytes;
  /** Only if the key was last changed at this revision; 0: only if it does not exist. Undefined: in any case. */
  readonly ifModRevision: number | undefined;
  readonly lease: string;
}

export function write(key: JsonBytes, { value, ifModRevision, lease }: Write): Promise<KvPutAnswer> {
  const body = {
    value,
    requestId: randomId(),
    ...(ifModRevision === undefined ? {} : { ifModRevision }),
    ...(lease === '' ? {} : { lease }),
  };
  return call('PUT', keyPath('kv', key), { body });
}

export function remove(key: JsonBytes, ifModRevision: number): Promise<KvDeleteAnswer> {
  return call('DELETE', keyPath('kv', key), { query: { ifModRevision } });
}

/** The key as it is, in the error of a write that was too late; null: it does not exist. */
export function currentOf(error: unknown): KeyJson | KeyValueJson | null | undefined {
  if (!(error instanceof ApiError) || error.code !== 'KEY_CHANGED') return undefined;
  return (error.details as KeyChangedDetails).current;
}

export async function exportPrefix(prefix: JsonBytes): Promise<Blob> {
  const response = await send('GET', '/v1/kv-export', { query: { prefix }, timeoutMs: TRANSFER_TIMEOUT_MS });
  if (!response.ok) throw errorOf(response.status, await response.json().catch(() => undefined));
  const text = await response.text();
  const last = text.trimEnd().split('\n').at(-1) ?? '';
  if (!last.startsWith('{"end"')) throw new ApiError(0, 'UNAVAILABLE', 'the export has ended too early; try again');
  return new Blob([text], { type: 'application/x-ndjson' });
}

export function importLines(lines: string, mode: string): Promise<KvImportAnswer> {
  return call('POST', '/v1/kv-import', { query: { mode }, body: lines, timeoutMs: TRANSFER_TIMEOUT_MS });
}

function keyPath(area: string, key: JsonBytes): string {
  if (isPathSafe(key)) return `/v1/${area}/${percentEncoded(key)}`;
  throw new ApiError(0, 'INVALID_ARGUMENT', `browsers cannot send the key "${key}" in a path; use the command line`);
}
