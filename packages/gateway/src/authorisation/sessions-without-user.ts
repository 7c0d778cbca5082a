import type { Logger } from '@remora/base';
import { NO_OWNER, type QueryResult, SESSIONS_LIMIT_MAX } from '@remora/protocol';
import type { Backend, RequestOptions } from '../backend.ts';

type Call = Pick<RequestOptions, 'principal' | 'timeoutMs'>;

/** No more are counted: the number is for people. */
const COUNTED_MAX = 10_000;

/**
 * Says how many sessions are about to be nobody's, before authentication is switched on: no caller may renew them any
 * more, so they end after their TTL. Counts them beforehand, while every caller may. An error only ends the count.
 */
export async function warnOfSessionsWithoutUser(
  { backend, logger }: { readonly backend: Pick<Backend, 'query'>; readonly logger: Logger },
  call: Call,
): Promise<void> {
  try {
    const sessions = await count(backend, call);
    const atLeast = sessions >= COUNTED_MAX;
    if (sessions > 0) logger.warn({ sessions, atLeast }, WARNING);
  } catch (error) {
    logger.warn({ error: String(error) }, 'could not count the sessions that were begun without a user');
  }
}

const WARNING =
  'authentication is switched on: sessions that were begun without a user can no longer be renewed, and end after their TTL; list them with: remora session ls --owner ""';

async function count(backend: Pick<Backend, 'query'>, call: Call): Promise<number> {
  let counted = 0;
  for (let after = 0n; counted < COUNTED_MAX; ) {
    const { sessions, next } = await page(backend, call, after);
    counted += sessions.length;
    if (next === 0n) return counted;
    after = next;
  }
  return counted;
}

type Sessions = Extract<QueryResult, { readonly type: 'sessions' }>;

function page(backend: Pick<Backend, 'query'>, { principal, timeoutMs }: Call, after: bigint): Promise<Sessions> {
  const query = { type: 'sessions', after, limit: SESSIONS_LIMIT_MAX, attributes: {}, owner: NO_OWNER } as const;
  return new Promise((resolve, reject) => {
    backend.query(query, { principal, timeoutMs }, (error, reply) => {
      if (reply?.result.type === 'sessions') resolve(reply.result);
      else reject(error);
    });
  });
}
