/** The calls for the last hours, and for live data. They need root while authentication is on. */
import { type Operations, queryParameter, type Stream } from './operation.ts';
import { refTo } from './parts.ts';

const minutes = queryParameter('minutes', 'How many minutes, up to the last complete one; default 60.', {
  ...{ type: 'integer', minimum: 1, maximum: 360 },
});
const place = (name: string, description: string) => queryParameter(name, description, { type: 'string' });

const LIVE: Stream = {
  events: {
    overview: refTo('LiveOverview'),
    nodes: refTo('LiveNodes'),
    operators: refTo('LiveOperators'),
    schedulers: refTo('LiveSchedulers'),
    ranges: refTo('LiveRanges'),
    now: refTo('LiveNow'),
    problem: refTo('LiveProblem'),
    // The last one: the caller may not look any more.
    error: refTo('Error'),
  },
};

export const HISTORY_OPERATIONS: Operations = {
  '/v1/cluster/activity': {
    get: {
      ...{ id: 'showActivity', answer: 'Activity', query: [minutes] },
      summary: 'Shows rates and quantiles of each node, minute by minute.',
      description:
        "The masters' leader keeps up to 360 minutes in memory. A new leader begins again, so the list may be shorter.",
    },
  },
  '/v1/cluster/heat': {
    get: {
      ...{ id: 'showHeat', answer: 'Heat' },
      summary: 'Shows the load by minute and key: which keys are hot, and since when.',
      description:
        'Leaders of ranges sample the keys of requests, so columns show structure inside one range. Columns are narrow where the load is. start and end zoom into a span.',
      query: [
        minutes,
        queryParameter('what', 'What to count. Default: reads.', {
          enum: ['reads', 'writes', 'readBytes', 'writeBytes'],
        }),
        queryParameter('columns', 'How many columns at most; default 512.', {
          ...{ type: 'integer', minimum: 1, maximum: 512 },
        }),
        place('start', 'Only keys from this place on, such as key:orders/. Default: all.'),
        place('end', 'Only keys before this place. Default: all.'),
      ],
    },
  },
  '/v1/cluster/live': {
    get: {
      ...{ id: 'watchCluster', answer: LIVE },
      summary: 'Sends what happens in the cluster as server-sent events.',
      description:
        'Each topic sends its whole state first, and then an event after each change, at most one a second. ' +
        'Events of ranges have only those that changed. problem says that a topic cannot be read now; its next event, ' +
        'with the whole state, says that it can. A client that is slow misses events, and gets whole states instead. ' +
        'Events have no ids: after a reconnect, whole states are sent again.',
      query: [
        queryParameter('topics', 'One or more of overview,nodes,operators,schedulers,ranges,now. Required.', {
          type: 'string',
        }),
      ],
    },
  },
};
