import { type Clock, type Logger, type Random, ServiceError, toServiceError } from '@remora/base';
import type { AdminApi } from '../admin/admin-api.ts';
import type { AuthAdmin } from '../authorisation/auth-admin.ts';
import type { Backend } from '../backend.ts';
import { sharedBacklog } from '../lock/lock-event-backpressure.ts';
import { REQUEST_LIMITS, type RequestLimits } from '../request-limits.ts';
import type { WaitSlots } from '../routing/calls/wait-slots.ts';
import { AcquireCalls } from './acquire-calls.ts';
import type { ApiAnswer, ApiRequest } from './api-types.ts';
import { Fields } from './fields.ts';
import { KvApi } from './kv/kv-api.ts';
import { LiveHub } from './live/live-hub.ts';
import { LockCalls } from './lock-calls.ts';
import { LockLists } from './lock-lists.ts';
import { JSON_LINES } from './openapi/parts.ts';
import { RangeCalls } from './range-calls.ts';
import type { Route, RouteDeps } from './route.ts';
import { routesOf } from './routes.ts';
import { SessionCalls } from './session-calls.ts';
import { errorAnswer, type HttpDetails } from './statuses.ts';
import { parseTarget } from './targets.ts';

export interface HttpApiDeps {
  readonly backend: Backend;
  readonly admin: AdminApi;
  readonly auth: AuthAdmin;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Slots for calls that wait, and for streams of events. */
  readonly waits: WaitSlots;
  /** Bytes of the key and the value in one request. Default: as in `REQUEST_LIMITS`. */
  readonly requestBytesMax?: number;
}

const PATH_SHOWN_MAX = 200;

/** The JSON API, without a transport (`node/http` has that). */
export class HttpApi {
  readonly #logger: Logger;
  readonly #deps: HttpApiDeps;
  readonly #backlog = sharedBacklog();
  readonly #limits: RequestLimits;
  /** Shared by all clients of this gateway. */
  readonly #live: LiveHub;
  /** Grants and places of clients that are gone, while they are released. */
  readonly #takingBack = new Set<Promise<unknown>>();

  constructor(deps: HttpApiDeps) {
    this.#logger = deps.logger;
    this.#deps = deps;
    const { requestBytesMax = REQUEST_LIMITS.requestBytesMax } = deps;
    this.#limits = { ...REQUEST_LIMITS, requestBytesMax };
    this.#live = new LiveHub({ api: deps.admin, backend: deps.backend, clock: deps.clock });
  }

  /** The calls in the name of a caller. */
  #callsOf({ principal, trace }: ApiRequest): RouteDeps {
    const { backend, admin, auth, clock, random, waits } = this.#deps;
    const wallMs = () => clock.wallMs();
    const calls = new RangeCalls(backend, clock, { principal, trace });
    return {
      ...{ backend, admin, auth, clock, waits, backlog: this.#backlog, live: this.#live },
      acquires: new AcquireCalls({ calls, clock, random, waits, takingBack: this.#takingBack }),
      locks: new LockCalls(calls),
      lists: new LockLists(calls, wallMs),
      sessions: new SessionCalls(calls, random, wallMs),
      kv: new KvApi(calls, this.#limits),
    };
  }

  /** Never rejects: errors become answers. */
  async handle(request: ApiRequest): Promise<ApiAnswer> {
    try {
      return await this.#routed(request);
    } catch (thrown) {
      const error = toServiceError(thrown);
      if (error.code === 'INTERNAL')
        this.#logger.error({ error: error.message, cause: error.cause }, 'HTTP call failed');
      return errorAnswer(error);
    }
  }

  /** Resolves when the grants and places of clients that are gone have been released. */
  async cleanedUp(): Promise<void> {
    await Promise.all(this.#takingBack);
  }

  #routed(request: ApiRequest): Promise<ApiAnswer> {
    const { method, target, body, lines, signal, principal, lastEventId, trace } = request;
    const { address, isSecure = false } = request;
    const parsed = parseTarget(target);
    const routes = routesOf(parsed);
    const found = routes.find(({ route }) => route.method === method);
    if (found === undefined) {
      throw routes.length === 0
        ? nothingThere(target)
        : wrongMethod(
            method,
            routes.map(({ route }) => route.method),
          );
    }
    if ((found.route.takesLines === true) !== (lines !== undefined)) throw wrongType(found.route);
    const fields = new Fields(body ?? {});
    return found.route.handle(this.#callsOf(request), {
      target: parsed,
      params: found.params,
      fields,
      lines: lines ?? [],
      lastEventId,
      trace,
      signal,
      principal,
      address,
      isSecure,
    });
  }
}

function nothingThere(target: string): ServiceError {
  const path = target.slice(0, PATH_SHOWN_MAX);
  const message = `there is no path ${path}; see /openapi.json for all paths, and write a / in a name as %2F`;
  return new ServiceError('UNIMPLEMENTED', message, { details: { httpStatus: 404 } satisfies HttpDetails });
}

function wrongMethod(method: string, allowed: readonly string[]): ServiceError {
  const allow = allowed.join(', ');
  const details: HttpDetails = { httpStatus: 405, headers: { allow } };
  return new ServiceError('UNIMPLEMENTED', `the method ${method.slice(0, 20)} is not allowed here; use ${allow}`, {
    details: { ...details },
  });
}

function wrongType({ takesLines }: Route): ServiceError {
  const message = takesLines
    ? `the body is JSON lines: -H "content-type: ${JSON_LINES}" --data-binary @FILE`
    : 'the body is application/json, one object: curl --json';
  return new ServiceError('INVALID_ARGUMENT', message, { details: { httpStatus: 415 } satisfies HttpDetails });
}
