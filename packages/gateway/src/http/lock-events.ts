import { jsonBytes, unreachable } from '@remora/base';
import { type LockEvent, type LockId, type LockNews, type Revocation, validateLockQuery } from '@remora/lock';
import type { HeldBytes } from '@remora/protocol';
import type { Asked, Backend, LockWatchOptions } from '../backend.ts';
import { LockEventBackpressure } from '../lock/lock-event-backpressure.ts';
import type { EventStream } from './api-types.ts';
import { holderJson, lockJson, ownerJson, waiterJson } from './lock-json.ts';
import { refuse } from './range-calls.ts';
import { errorAnswer } from './statuses.ts';

/** Checks the options before the response says that events follow. `backlog` is shared by all streams. */
export function lockEvents(backend: Backend, backlog: HeldBytes, options: LockWatchOptions & Asked): EventStream {
  const { namespace, name, single } = options;
  refuse(
    single
      ? validateLockQuery({ type: 'show', lock: { namespace, name } })
      : validateLockQuery({ type: 'list', namespace, prefix: name, after: new Uint8Array(), limit: 1 }),
  );
  return (sink) => {
    const stream = new LockEventBackpressure(
      (one) => sink.write(one.type, newsJson(one)),
      () => control,
      backlog,
    );
    const control = backend.watchLocks(
      options,
      (events) => stream.send(events),
      (error) => sink.end('error', errorAnswer(error).body),
    );
    const onClose = (): void => {
      control.cancel();
      stream.close();
    };
    return { onDrain: () => stream.onDrain(), onClose };
  };
}

function newsJson(news: LockNews): unknown {
  switch (news.type) {
    case 'begin':
      return { from: jsonBytes(news.from), to: jsonBytes(news.to) };
    case 'state':
      return { ...idJson(news.lock), revision: news.revision, state: news.state ? lockJson(news.state) : null };
    case 'live':
      return {};
    case 'events':
      return { ...idJson(news.lock), revision: news.revision, events: news.events.map(eventJson) };
    default:
      return unreachable(news);
  }
}

function revocationJson({ revision, version, by, reason, sinceMs }: Revocation) {
  return { revision, version, by, reason, sinceMs };
}

function idJson({ namespace, name }: LockId) {
  return { namespace, name: jsonBytes(name) };
}

function eventJson(event: LockEvent): unknown {
  const { type } = event;
  switch (event.type) {
    case 'acquired':
    case 'upgraded':
      return { type, holder: holderJson(event.holder), waited: event.waited };
    case 'downgraded':
    case 'changed':
      return { type, holder: holderJson(event.holder) };
    case 'released':
    case 'expired':
    case 'forced':
      return { type, ...ownerJson(event.owner), version: event.version };
    case 'queued':
      return { type, waiter: waiterJson(event.waiter) };
    case 'left':
      return { type, ...ownerJson(event.owner), code: event.code };
    case 'capacity':
      return { type, capacity: event.capacity };
    case 'kept':
      return { type, data: event.data === undefined ? null : jsonBytes(event.data) };
    case 'revoking':
      return { type, revocation: event.revocation === undefined ? null : revocationJson(event.revocation) };
    case 'recorded':
      return { type, forced: event.forced ?? null };
    case 'passing':
      return { type, count: event.count };
    default:
      return unreachable(event);
  }
}
