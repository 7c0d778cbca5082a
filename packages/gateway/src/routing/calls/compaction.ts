import { ServiceError, toServiceError } from '@remora/base';
import type { CommandResult } from '@remora/protocol';
import { PLAIN_KEYS } from '../routes/request-keys.ts';
import type { Route } from '../routes/route-map.ts';
import { eachOf } from './each-of.ts';
import type { CommandIdentity, RangeCalls } from './range-calls.ts';

const RANGES_AT_A_TIME = 8;

interface Compacted {
  readonly raftTerm: number;
  readonly result: CommandResult;
}

interface Compaction {
  readonly revision: number;
  /** The newest revision of the cluster, asked for after the request came. */
  readonly newest: number;
  readonly identity: CommandIdentity;
}

/**
 * Makes the history of plain keys unreadable below a revision, in every range that has any.
 *
 * CO1. All ranges get the same request id. So after a retry, ranges that have compacted (and ranges split off from
 *      them) return the remembered outcome, and the others compact.
 * CO2. A revision in the future is refused, as by a single range, before any range is asked. A range that has written
 *      nothing at or above the revision moves on to it, and writes above it from then on.
 * CO3. Ranges also compact by themselves. It is an error only if all ranges had been compacted before.
 * CO4. Once the first command is sent, a failure or a time-out leaves the outcome unknown. Before that, nothing was
 *      done.
 */
export async function compactRanges(calls: RangeCalls, compaction: Compaction): Promise<Compacted> {
  const { revision, newest, identity } = compaction;
  if (revision > newest) {
    const message = `revision ${revision} is in the future; the newest is ${newest}`;
    throw new ServiceError('FUTURE_REVISION', message, { details: { revision: newest } });
  }
  const command = { type: 'compact', revision } as const;
  let raftTerm = 0;
  let compacted = false;
  let refusal: ServiceError | undefined;
  const one = async (route: Route): Promise<void> => {
    try {
      const reply = await calls.execute(() => command, route, identity);
      raftTerm = Math.max(raftTerm, reply.raftTerm);
      compacted = true;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === 'STALE_EPOCH') {
        await calls.pause();
        await all(await calls.routesOf(route));
      } else if (error.code === 'COMPACTED') refusal = later(refusal, error);
      else throw error;
    }
  };
  const all = (routes: readonly Route[]): Promise<void> => eachOf(routes, RANGES_AT_A_TIME, one);
  const routes = await calls.routesOf(PLAIN_KEYS);
  await all(routes).catch((error: unknown) => {
    throw halfDone(error); // CO4
  });
  if (!compacted && refusal !== undefined) throw refusal;
  return { raftTerm, result: { type: 'compact' } };
}

function halfDone(cause: unknown): ServiceError {
  const { message: why } = toServiceError(cause);
  const message = `some ranges may be compacted, but not all are: ${why}; retry with the same request id`;
  return new ServiceError('UNKNOWN_OUTCOME', message, { cause });
}

/** Returns the error that names the higher revision. */
function later(a: ServiceError | undefined, b: ServiceError): ServiceError {
  return a !== undefined && compactedTo(a) >= compactedTo(b) ? a : b;
}

function compactedTo({ details }: ServiceError): number {
  return typeof details?.compactRevision === 'number' ? details.compactRevision : 0;
}
