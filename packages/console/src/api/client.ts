/** Calls of the HTTP API of the node that serves this page. */
import { type Parameters, searchOf } from '../logic/location.ts';
import { answered, connection, unanswered } from './connection.ts';
import { ApiError, errorOf, UNKNOWN_OUTCOME, UNREACHABLE } from './errors.ts';

const TIMEOUT_MS = 20_000;
/** Cross-site requests cannot set a header, so this one shows that the request is from this page. */
const CSRF = { 'x-remora-csrf': '1' };

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

interface CallOptions {
  readonly query?: Parameters;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
  /** Whether the request changes something. Default: all but `GET` do. */
  readonly changes?: boolean;
}

const listeners: { loggedOut(): void } = { loggedOut() {} };

/** Calls back when a request was refused because its user has to log in. */
export function whenLoggedOut(call: () => void): void {
  listeners.loggedOut = call;
}

export function get<Answer>(path: string, query: Parameters = {}, signal?: AbortSignal): Promise<Answer> {
  return call<Answer>('GET', path, { query, signal });
}

/**
 * @throws {ApiError} the error of the API. If no answer came: `UNREACHABLE` for what only reads, `UNKNOWN_OUTCOME` for
 *   a change. While the connection is lost, changes are not sent (`UNREACHABLE`).
 */
export async function call<Answer>(method: Method, path: string, options: CallOptions = {}): Promise<Answer> {
  const response = await send(method, path, options);
  const text = await response.text().catch(() => {
    throw withoutAnswer(options.changes ?? method !== 'GET');
  });
  if (response.ok) return (text === '' ? undefined : parsed(text)) as Answer;
  const error = errorOf(response.status, parsed(text));
  if (error.code === 'UNAUTHENTICATED') listeners.loggedOut();
  throw error;
}

/** The same for an answer that is not JSON. */
export async function send(method: Method, path: string, options: CallOptions = {}): Promise<Response> {
  const { query = {}, body, signal, timeoutMs = TIMEOUT_MS, changes = method !== 'GET' } = options;
  const limit = AbortSignal.timeout(timeoutMs);
  const isText = typeof body === 'string';
  if (changes && !connection.get().isUp) {
    throw new ApiError(0, UNREACHABLE, 'the node that serves this page does not answer, so the change was not sent');
  }
  try {
    const response = await fetch(`${path}${searchOf(query)}`, {
      method,
      headers: {
        ...(method === 'GET' ? {} : CSRF),
        ...(body === undefined ? {} : { 'content-type': isText ? 'application/x-ndjson' : 'application/json' }),
      },
      ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
      cache: 'no-store',
      credentials: 'same-origin',
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
    answered();
    return response;
  } catch (cause) {
    if (signal?.aborted) throw cause;
    if (!limit.aborted) unanswered();
    throw withoutAnswer(changes, limit.aborted);
  }
}

function withoutAnswer(changes: boolean, isLate = false): ApiError {
  if (changes) {
    return new ApiError(0, UNKNOWN_OUTCOME, 'the node that serves this page did not answer this change');
  }
  return isLate
    ? new ApiError(0, 'DEADLINE_EXCEEDED', 'the node did not answer in time')
    : new ApiError(0, UNREACHABLE, 'the node that serves this page does not answer');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
