/**
 * Prints a failure: the broken promise, then the relevant events. Events about the things that the failure names come
 * first.
 */
import type { EventName, Trace, TraceItem } from './trace.ts';
import { Violation } from './violation.ts';

export interface SimFailure {
  readonly property: string;
  readonly detail: string;
  /** Lines to read. */
  readonly last: readonly string[];
}

const LAST_EVENTS = 50;
const LAST_CONCERNED = 40;
/** Shown only if the failure names their node or group. */
const NOISE: ReadonlySet<EventName> = new Set(['send', 'append', 'heartbeat', 'frame', 'applied', 'commit']);

export function failureOf(trace: Trace, failure: unknown): SimFailure {
  const known = failure instanceof Violation;
  const text = failure instanceof Error ? (failure.stack ?? failure.message) : String(failure);
  const [property, detail] = known ? [failure.property, failure.message] : ['nodes do not stop', text];
  return { property, detail, last: eventsFor(trace, detail) };
}

function eventsFor(trace: Trace, detail: string): readonly string[] {
  const named = namedIn(detail);
  const concerned = trace.last(LAST_CONCERNED, (item) => item.name !== 'frame' && concerns(named, item));
  const last = trace.last(LAST_EVENTS, ({ name }) => !NOISE.has(name));
  const head = concerned.length === 0 ? [] : [`last of ${describe(named)}:`, ...concerned, ''];
  return [...head, 'last of all, without messages between nodes:', ...last];
}

/** The things that a text names. A range has the same id as its group. */
interface Named {
  readonly nodes: ReadonlySet<number>;
  readonly groups: ReadonlySet<number>;
  /** Keys, locks and requests, in quotes. */
  readonly texts: readonly string[];
}

function namedIn(detail: string): Named {
  const numbers = (pattern: RegExp) => new Set([...detail.matchAll(pattern)].map(([, id]) => Number(id)));
  return {
    nodes: numbers(/\bnodes? (\d+)/g),
    groups: numbers(/\b(?:group|range) (\d+)/g),
    texts: [...new Set([...detail.matchAll(/"([^"\n]{1,80})"/g)].map(([, text]) => text ?? ''))],
  };
}

/** If both a node and a group are named, only the group's replica on that node matches. */
function concerns({ nodes, groups, texts }: Named, { node, group, text }: TraceItem): boolean {
  if (texts.some((one) => text.includes(one))) return true;
  if (nodes.size === 0) return groups.has(group);
  return nodes.has(node) && (group === 0 || groups.size === 0 || groups.has(group));
}

function describe({ nodes, groups, texts }: Named): string {
  const parts = [
    ...[...nodes].map((id) => `node ${id}`),
    ...[...groups].map((id) => `group ${id}`),
    ...texts.map((text) => `"${text}"`),
  ];
  return parts.slice(0, 8).join(', ');
}
