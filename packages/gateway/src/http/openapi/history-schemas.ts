/** What `/v1/cluster/activity`, `/v1/cluster/heat` and `/v1/cluster/live` answer. */
import { CLUSTER_SCHEMAS } from './cluster-schemas.ts';
import { answer, count, type Schema, text } from './parts.ts';

const listOf = (items: Schema): Schema => ({ type: 'array', items });
const moment = (description: string): Schema => count(`${description}, in ms since 1970.`);
const atMs = moment('When this gateway learned it');
const nodeId = count('The id of the node.', { minimum: 1 });
const place = text('A place in the order of all keys, such as key:orders/42 or lock:orders/42; - is no bound.');
const number = { type: 'number', minimum: 0 };
const known = (description: string): Schema => ({ type: ['number', 'null'], minimum: 0, description });
const times = { ...listOf(count('In ms since 1970.')), description: 'When each minute began, without gaps.' };
const stepMs = count('The length of a minute in ms.');

/** Of a minute, or of the last seconds. */
const MEASURED = {
  requestsPerS: 'Requests to ranges that the gateway of the node sent, per second.',
  readsPerS: 'Those that read keys.',
  writesPerS: 'Those that write keys.',
  locksPerS: 'Those about locks, sessions and leases. An acquire that waited in a queue does not count.',
  p50Ms: 'Median time of a request, estimated from a histogram.',
  p99Ms: '99th percentile of the time of a request.',
  fsyncP99Ms: '99th percentile of the time of a synced write to the log of the node.',
  commitP99Ms: '99th percentile of the time from the proposal of an entry by a leader there until it is applied.',
} as const;

function measured(of: (description: string) => Schema): Readonly<Record<string, Schema>> {
  return Object.fromEntries(Object.entries(MEASURED).map(([name, description]) => [name, of(description)]));
}

/** An answer of `/v1/cluster` as an event. */
function eventOf({ properties, required, ...rest }: Schema): Schema {
  return {
    ...rest,
    properties: { atMs, ...(properties as Readonly<Record<string, Schema>>) },
    required: ['atMs', ...(required as readonly string[])],
  };
}

const replica = answer({ nodeId, type: text('voter or learner, or in between.') });
const load = answer({
  ...{ readsPerS: number, readBytesPerS: number, writesPerS: number, writeBytesPerS: number },
});
const liveRange = answer(
  {
    id: count('The id of the range.'),
    ...{ start: place, end: place, leaderNode: count('The node that leads it; 0: not known.') },
    replicas: listOf(replica),
    bytes: count('Bytes of its rows.'),
    keys: count('About how many plain keys it has.'),
    load,
  },
  ['bytes', 'keys', 'load'],
);

export const HISTORY_SCHEMAS = {
  Activity: answer({
    ...{ stepMs, times },
    nodes: listOf(
      answer({
        nodeId,
        ...measured((description) => ({ ...listOf(known(description)), description: 'One for each of `times`.' })),
      }),
    ),
  }),
  Heat: answer({
    stepMs,
    what: text('What the values count.', { enum: ['reads', 'writes', 'readBytes', 'writeBytes'] }),
    times,
    borders: { ...listOf(place), description: 'Column i is from border i to border i + 1.' },
    values: {
      ...listOf({ type: ['array', 'null'], items: number }),
      description: 'For each of `times`: requests or bytes in that minute, by column. null: nothing is known.',
    },
    ranges: {
      ...listOf(answer({ id: count('The id of the range.'), start: place })),
      description: 'The ranges in the span; empty if there are more than 1,000.',
    },
  }),
  LiveOverview: eventOf(CLUSTER_SCHEMAS.Cluster),
  LiveNodes: eventOf(CLUSTER_SCHEMAS.ClusterNodes),
  LiveOperators: eventOf(CLUSTER_SCHEMAS.ClusterOperators),
  LiveSchedulers: eventOf(CLUSTER_SCHEMAS.ClusterSchedulers),
  LiveRanges: answer({
    atMs,
    whole: { type: 'boolean', description: 'true: these are all ranges. false: the others have not changed.' },
    ranges: listOf(liveRange),
    removed: { ...listOf(count('An id.')), description: 'Ranges that have ended.' },
  }),
  LiveNow: answer({
    atMs,
    nodes: listOf(answer({ nodeId, spanMs: count('How long the node counted.'), ...measured(known) })),
  }),
  LiveProblem: answer({
    atMs,
    topic: text('The topic that cannot be read now.'),
    code: text('The code of the error.'),
    message: text('What is wrong.'),
  }),
} as const;
