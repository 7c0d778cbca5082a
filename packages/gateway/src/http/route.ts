/** What routes are made of. */
import type { Bytes, Clock } from '@remora/base';
import type { HeldBytes } from '@remora/protocol';
import type { AdminApi } from '../admin/admin-api.ts';
import type { AuthAdmin } from '../authorisation/auth-admin.ts';
import type { Backend } from '../backend.ts';
import type { WaitSlots } from '../routing/calls/wait-slots.ts';
import type { AcquireCalls } from './acquire-calls.ts';
import type { ApiAnswer, ApiRequest, EventSource } from './api-types.ts';
import type { Fields } from './fields.ts';
import type { KvApi } from './kv/kv-api.ts';
import type { LiveHub } from './live/live-hub.ts';
import type { LockCalls } from './lock-calls.ts';
import type { LockLists } from './lock-lists.ts';
import type { SessionCalls } from './session-calls.ts';
import { onlyThese, type Target, text } from './targets.ts';

export interface RouteDeps {
  readonly backend: Backend;
  readonly admin: AdminApi;
  readonly auth: AuthAdmin;
  readonly clock: Clock;
  readonly waits: WaitSlots;
  /** Shared by all streams of events. */
  readonly backlog: HeldBytes;
  readonly acquires: AcquireCalls;
  readonly locks: LockCalls;
  readonly lists: LockLists;
  readonly sessions: SessionCalls;
  readonly kv: KvApi;
  readonly live: LiveHub;
}

/** A request whose path matches a route. */
export interface HttpCall {
  readonly target: Target;
  /** The segments of the path in place of the names in braces. */
  readonly params: ReadonlyMap<string, Bytes>;
  /** The fields of the body; none if there is no body. */
  readonly fields: Fields;
  /** The lines of the body, for a route that takes them. */
  readonly lines: readonly unknown[];
  /** The header `Last-Event-ID`. */
  readonly lastEventId: string | undefined;
  readonly signal: AbortSignal;
  readonly principal: ApiRequest['principal'];
  readonly address: ApiRequest['address'];
  /** Whether the caller has come by TLS. */
  readonly isSecure: boolean;
  readonly trace: ApiRequest['trace'];
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As in OpenAPI: a name in braces stands for one segment. */
  readonly path: string;
  /** Its body are JSON lines. */
  readonly takesLines?: true;
  handle(deps: RouteDeps, call: HttpCall): Promise<ApiAnswer>;
}

type Handle = (deps: RouteDeps, call: HttpCall) => Promise<unknown>;

export function changing(method: Route['method'], path: string, handle: Handle): Route {
  return {
    ...{ method, path },
    handle: async (deps, call) => {
      onlyThese(call.target.query, []);
      return { status: 200, body: await handle(deps, call) };
    },
  };
}

export function reading(path: string, handle: Handle): Route {
  return {
    ...{ method: 'GET', path },
    handle: async (deps, call) => {
      call.fields.end();
      return { status: 200, body: await handle(deps, call) };
    },
  };
}

/** Takes a slot for a stream. @throws ServiceError RESOURCE_EXHAUSTED */
export function slotOf({ waits }: Pick<RouteDeps, 'waits'>): () => void {
  const giveSlot = waits.take();
  if (giveSlot === undefined) throw waits.refusal();
  return giveSlot;
}

/** Gives the slot of a stream back when the stream has closed. */
export function untilClosed<Sink>(
  stream: (sink: Sink) => EventSource,
  closed: () => void,
): (sink: Sink) => EventSource {
  return (sink) => {
    const source = stream(sink);
    return {
      onDrain: () => source.onDrain(),
      onClose: () => {
        source.onClose();
        closed();
      },
    };
  };
}

export function param(call: HttpCall, name: string): string {
  return text(bytesParam(call, name), name);
}

export function bytesParam({ params }: HttpCall, name: string): Bytes {
  const value = params.get(name);
  if (value === undefined) throw new TypeError(`the path of the route has no {${name}}`);
  return value;
}
