import type { KvEvent, PipeWatchMessage } from '@remora/protocol';
import { flag, revision, signal } from '../options/option-kinds.ts';
import { optionSet } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';
import { KeyChanges, type WatchedKeys } from './key-changes.ts';
import { type KvPair, toPair } from './keys.ts';

export interface WatchOptions {
  /** The first revision to report. Default: changes from now on. */
  readonly startRevision?: number | undefined;
  /** Leave out puts. Default false. */
  readonly noPut?: boolean | undefined;
  /** Leave out deletes. Default false. */
  readonly noDelete?: boolean | undefined;
  /** Deliver with each change the pair before it, unless that revision was compacted. Default false. */
  readonly prevKv?: boolean | undefined;
  /** Ends the watch when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

export const WATCH_OPTIONS = optionSet<WatchOptions>('watch', {
  ...{ startRevision: revision, noPut: flag, noDelete: flag, prevKv: flag, signal },
});

export interface WatchEvent {
  readonly type: 'put' | 'delete';
  /** For a delete only its key and `modRevision` are meaningful. */
  readonly kv: KvPair;
  /** The pair before the change, if `prevKv` asked for it and it is known. */
  readonly prev: KvPair | undefined;
}

/**
 * One watch, as an async iterator.
 *
 * W1. Events arrive in the order of their revisions, each once. After a lost connection the watch resumes behind the
 *     last revision that it has received completely.
 * W2. The watch ends with COMPACTED when the revision to resume from was compacted.
 * W3. Once the watch has begun, it reports every change that is requested afterwards.
 */
export class KvWatch extends KeyChanges<WatchEvent> {
  constructor(requester: Requester, range: WatchedKeys, options: WatchOptions) {
    super(requester, range, { ...options, toEvents: toWatchEvents });
  }
}

function toWatchEvents(message: PipeWatchMessage): readonly WatchEvent[] {
  return message.kind === 'events' ? message.events.map(toWatchEvent) : [];
}

function toWatchEvent(event: KvEvent): WatchEvent {
  return { type: event.type, kv: toPair(event.kv), prev: event.prev === undefined ? undefined : toPair(event.prev) };
}
