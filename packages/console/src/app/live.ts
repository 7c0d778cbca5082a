/**
 * The live states of the cluster: one stream for the whole page, with the topics that its parts follow. Each gateway
 * reads a topic once for all of its listeners, so an open console costs the cluster little.
 */
import type { ClusterJson, OperatorsJson, SchedulersJson } from '@remora/gateway/http/json/cluster';
import type { LiveNowJson, LiveRangeJson, LiveRangesJson, LiveTopic } from '@remora/gateway/http/json/history';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { stream } from '../api/events.ts';
import { withChanges } from '../logic/live-ranges.ts';
import { Store } from '../logic/store.ts';
import { type Resource, useResource, useStore } from './hooks.ts';

interface States {
  readonly overview: ClusterJson;
  readonly operators: OperatorsJson;
  readonly schedulers: SchedulersJson;
  readonly now: LiveNowJson;
  /** In the order of their keys. */
  readonly ranges: readonly LiveRangeJson[];
}

type Topic = keyof States & LiveTopic;

/** The last state of each topic; absent: it is not followed, or cannot be told at the moment. */
const states = new Store<Partial<States>>({});
const followers = new Map<Topic, number>();
let end: (() => void) | undefined;
let opened = '';
let isReopening = false;

interface Asked<State, Value> {
  /** The part of the state that is wanted. */
  of(state: State): Value;
  /** Names what `load` reads. */
  readonly key: string;
  load(signal: AbortSignal): Promise<Value>;
  /** How often to ask while there is no live state. */
  readonly everyMs: number;
}

/** The stream tells a state as soon as an answer could; asked for as well, all of it would be read twice. */
const HEAD_START_MS = 1_000;

/** A state that is kept up to date: by the live topic, and by asking for it while that cannot be told. */
export function useLiveResource<Name extends Topic, Value>(
  topic: Name,
  { of, key, load, everyMs }: Asked<States[Name], Value>,
): Resource<Value> {
  const live = useLive(topic);
  const isAsked = useLasting(live === undefined, HEAD_START_MS);
  const asked = useResource(isAsked ? key : undefined, load, { everyMs });
  const told = useMemo(() => (live === undefined ? undefined : of(live)), [live, key]);
  // While neither is known, the last state stays.
  const last = useRef<{ readonly key: string; readonly data: Value | undefined }>(undefined);
  const data = told ?? asked.data ?? (last.current?.key === key ? last.current.data : undefined);
  last.current = { key, data };
  return { ...asked, data, error: told === undefined ? asked.error : undefined };
}

/** Whether something has been true for this long. */
function useLasting(isTrue: boolean, ms: number): boolean {
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    if (!isTrue) return setLong(false);
    const timer = setTimeout(() => setLong(true), ms);
    return () => clearTimeout(timer);
  }, [isTrue, ms]);
  return isTrue && isLong;
}

/** Follows a topic while the caller is on the page. Undefined: there is no live state. */
export function useLive<Name extends Topic>(topic: Name): States[Name] | undefined {
  const present = useStore(states);
  useEffect(() => {
    follow(topic, 1);
    return () => follow(topic, -1);
  }, [topic]);
  return present[topic];
}

function follow(topic: Topic, change: 1 | -1): void {
  const count = (followers.get(topic) ?? 0) + change;
  if (count > 0) followers.set(topic, count);
  else followers.delete(topic);
  if (isReopening) return;
  // A page that replaces another one follows and leaves topics in one turn.
  isReopening = true;
  setTimeout(reopen, 0);
}

function reopen(): void {
  isReopening = false;
  const topics = [...followers.keys()].sort().join(',');
  if (topics === opened) return;
  opened = topics;
  end?.();
  end = undefined;
  forget();
  if (topics === '') return;
  end = stream({
    path: '/v1/cluster/live',
    query: () => ({ topics }),
    events: [...followers.keys(), 'problem'],
    state: (state) => state === 'closed' && forget(),
    event(name, data) {
      if (name === 'problem') return without((data as { readonly topic: LiveTopic }).topic);
      const value = name === 'ranges' ? withChanges(states.get().ranges ?? [], data as LiveRangesJson) : data;
      states.set({ ...states.get(), [name]: value });
    },
  });
}

function forget(): void {
  states.set({});
}

function without(topic: LiveTopic): void {
  states.set(Object.fromEntries(Object.entries(states.get()).filter(([name]) => name !== topic)));
}
