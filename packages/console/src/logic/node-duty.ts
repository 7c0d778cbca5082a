/** How far a drain or a decommissioning has come, and what stopping the node would still disturb. */
import type { NodeJson } from '@remora/gateway/http/json/cluster';
import { counted, rate } from './format.ts';

export interface Progress {
  readonly isDone: boolean;
  /** For the place beside the duty: `3 leaders left`, `drained`. */
  readonly short: string;
  /** A sentence or two. */
  readonly text: string;
}

type Node = Pick<NodeJson, 'name' | 'state' | 'duty' | 'leaders' | 'replicas'>;

/** Undefined: the node serves, is removed, or does not answer, so nothing moves away from it. */
export function dutyProgress({ name, state, duty, leaders, replicas }: Node): Progress | undefined {
  if (state !== 'up') return undefined;
  if (duty === 'draining' || duty === 'maintenance') {
    if (leaders === 0) return { isDone: true, short: 'drained', text: `${name} is drained: it leads no range.` };
    const left = counted(leaders, 'leader');
    return {
      isDone: false,
      short: `${left} left`,
      text: `${name} is draining: it still leads ${counted(leaders, 'range')}.`,
    };
  }
  if (duty !== 'decommissioning') return undefined;
  if (replicas === 0) {
    return {
      isDone: true,
      short: 'empty',
      text: `${name} is empty: it has no replica.`,
    };
  }
  const left = counted(replicas, 'replica');
  return { isDone: false, short: `${left} left`, text: `${name} is being emptied: it still has ${left}.` };
}

interface Uses {
  readonly isGateway: boolean;
  readonly leadsMasters: boolean;
  /** Undefined: not known. */
  readonly requestsPerS: number | undefined;
}

/** What stops when the node stops, a sentence each; none: nothing that a client notices. */
export function disturbances({ isGateway, leadsMasters, requestsPerS }: Uses): readonly string[] {
  const load =
    requestsPerS === undefined || requestsPerS === 0 ? '' : `, with ${rate(requestsPerS)} requests per second`;
  return [
    ...(isGateway ? [`It is a gateway${load}: when it stops, its clients connect to another one.`] : []),
    ...(leadsMasters ? ['It leads the masters: when it stops, they elect another leader within seconds.'] : []),
  ];
}
