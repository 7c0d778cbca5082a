/** The bodies of `/v1/cluster`. */
import { answer, count, object, refTo, type Schema, text } from './parts.ts';

const id = (of: string): Schema => count(`The id of the ${of}.`, { minimum: 1 });
const place = text('A place in the order of all keys, such as key:orders/42 or lock:orders/42; - is no bound.');
const ms = (description: string): Schema => count(description);
const signed = (description: string): Schema => ({ type: 'integer', description });
const rate = (of: string): Schema => ({ type: 'number', minimum: 0, description: `${of} per second.` });
const listOf = (items: Schema): Schema => ({ type: 'array', items });
const texts: Schema = listOf({ type: 'string' });
const flag = (description: string): Schema => ({ type: 'boolean', description });
/** The epoch of a range that the caller saw. */
const epoch = {
  confVersion: count('With version: the epoch of the range that you saw. If it has changed, nothing is done.', {
    minimum: 1,
  }),
  version: count('See confVersion.', { minimum: 1 }),
};
const nodeId = id('node');

const condition = answer({
  name: text('See the reference of conditions.'),
  severity: text('How bad it is.', { enum: ['info', 'warning', 'critical'] }),
  scope: text('Whether it is of the cluster, or of one node.'),
  rangeId: count('The range; 0: of none.'),
  nodeId: count('The node; 0: of none.'),
  text: text('What is wrong.'),
  advice: text('What to do.'),
  docs: text('The page about it.'),
});

const node = answer({
  ...{ id: nodeId, name: text('Its name.'), state: text('Whether the masters hear it: up, silent or unknown.') },
  duty: text('What operators want of it: serving, draining, maintenance, decommissioning, removed.'),
  roles: texts,
  isMaster: flag("It has a replica of the masters' group."),
  version: text('Its release.'),
  peerAddress: text('For other nodes.'),
  clientAddress: text('For clients.'),
  httpAddress: text('For HTTP.'),
  silentMs: signed('How long the masters have not heard it; -1: not known.'),
  maintenanceLeftMs: ms('How long its maintenance goes on.'),
  replicas: count('Replicas of ranges.'),
  leaders: count('Ranges that it leads.'),
  bytes: count('Bytes of its replicas.'),
  capacityBytes: count('The size of the disk of its data.'),
  availableBytes: count('Free bytes there.'),
  labels: { type: 'object', additionalProperties: { type: 'string' }, description: 'Its place.' },
});

const replica = answer({
  ...{ id: id('replica'), nodeId },
  type: text('voter or learner, or in between.'),
  state: text('leader, replicate, probe, snapshot or unknown.'),
  logBehind: signed('Entries that it lacks; -1: not known.'),
  commitBehind: signed('Committed entries that it does not know of; -1: not known.'),
  bytes: count('Bytes of its rows.'),
  silentMs: signed('How long ago it reported; -1: not known.'),
});

const range = answer(
  {
    ...{ id: id('range'), start: place, end: place },
    epoch: answer({ confVersion: count('Of the replicas.'), version: count('Of the bounds.') }),
    leaderNode: count('The node that leads it; 0: none is known.'),
    revisionSource: text('Where it takes revisions from.'),
    replicas: listOf(replica),
    state: answer({
      term: count("The leader's term."),
      commit: count('The last committed entry.'),
      applied: count('The last applied entry.'),
      revision: count('Its newest revision.'),
      compactRevision: count('Older revisions are gone.'),
      bytes: count('Bytes of its rows.'),
      keys: count('Its keys.'),
      leases: count('Its leases.'),
      watches: count('Watches at its leader.'),
    }),
    load: answer({
      readsPerS: rate('Reads'),
      readBytesPerS: rate('Bytes read'),
      writesPerS: rate('Writes'),
      writeBytesPerS: rate('Bytes written'),
    }),
  },
  ['state', 'load'],
);

const operator = answer(
  {
    ...{ id: id('operator'), rangeId: id('range') },
    kind: text('What it changes.'),
    status: text('How far it is.'),
    reason: text('Why it was made.'),
    steps: texts,
    step: count('How many steps are done.'),
    ageMs: ms('How long ago it began.'),
    endedMs: ms('How long ago it ended. Absent: it is under way.'),
    outcome: text('How it ended; empty: it is under way.'),
  },
  ['endedMs'],
);

const scheduler = answer(
  {
    name: text('Its name.'),
    description: text('What it does.'),
    pausedMs: ms('How long it stays paused. Absent: it runs.'),
    last: text('What it did last.'),
    settings: texts,
  },
  ['pausedMs'],
);

const setting = answer({
  name: text('Its name.'),
  value: text('Its value.'),
  defaultValue: text('Its value if nobody sets it.'),
  placeholder: text('The form of values.'),
  description: text('What it does.'),
});

const schedulers = listOf(scheduler);
const change = answer({ rangeId: id('range'), kind: text('The kind.'), reason: text('Why.'), steps: texts });

export const CLUSTER_SCHEMAS = {
  Cluster: answer(
    {
      clusterId: text('The id of the cluster.'),
      answeringNode: id('node that answers'),
      masterLeader: count(
        "The node that leads the masters. Absent: none does, and only this node's knowledge is shown.",
      ),
      leadingMs: ms('How long it has led them.'),
      version: answer({
        inForce: text('The version of the cluster; empty: not known.'),
        newest: text('The newest version that all nodes can write; empty: not known.'),
      }),
      authentication: flag('Whether authentication is on.'),
      nodes: listOf(refTo('ClusterNode')),
      health: refTo('ClusterHealth'),
    },
    ['masterLeader', 'leadingMs'],
  ),
  ClusterNode: node,
  ClusterNodes: answer({ nodes: listOf(refTo('ClusterNode')) }),
  ClusterHealth: answer({ nodes: count('Nodes.'), ranges: count('Ranges.'), conditions: listOf(condition) }),
  ClusterRange: range,
  ClusterRanges: answer({ ranges: listOf(refTo('ClusterRange')), next: place }, ['next']),
  ClusterOperator: operator,
  ClusterOperators: answer({ operators: listOf(refTo('ClusterOperator')) }),
  ClusterSchedulers: answer({ schedulers }),
  ClusterRebalance: answer({ changes: listOf(change), schedulers }),
  ClusterSettings: answer({ settings: listOf(setting) }),
  ClusterUpgrade: answer({
    inForce: text('The version of the cluster.'),
    newest: text('The newest version that can come into force.'),
    nodes: listOf(
      answer({
        ...{ id: nodeId, name: text('Its name.'), build: text('Its release.'), state: text('Whether it is up.') },
        canWriteFrom: text('The lowest version that it writes.'),
        canWriteTo: text('The highest.'),
        knows: text('The version in force, as far as it knows.'),
      }),
    ),
    blockers: texts,
  }),
  ClusterWhy: answer({ lines: texts }),
  ClusterDone: answer({}),
  ClusterTransfer: answer({ fromNode: count('The node that led before.') }),
  ClusterLogLevel: answer({ level: text('The level now.'), before: text('The level before.') }),
  SetDuty: object(
    {
      duty: text('What the node shall do.', {
        enum: ['serving', 'draining', 'maintenance', 'decommissioning', 'removed'],
      }),
      for: {
        oneOf: [{ type: 'string' }, { type: 'number', minimum: 0 }],
        description: 'With maintenance: how long. "10m", or a number of ms.',
      },
    },
    ['duty'],
  ),
  SetLogLevel: object({ level: text('error, warn, info or debug.') }, ['level']),
  SplitRange: object({ at: text('The first key of the new range; default: in the middle.'), ...epoch }),
  MergeRange: object({ source: id('range behind it, which is merged into it'), ...epoch }, ['source']),
  MoveReplica: object({ from: id('node that has it'), to: id('node that gets it'), ...epoch }, ['from', 'to']),
  ReplicaNode: object({ node: nodeId, ...epoch }, ['node']),
  TransferLeader: object({ to: id('node that leads then') }, ['to']),
  PauseScheduler: object(
    {
      pausedFor: {
        oneOf: [{ type: 'string' }, { type: 'number', minimum: 0 }],
        description: 'How long; 0 resumes it. "10m", or a number of ms.',
      },
    },
    ['pausedFor'],
  ),
  SetSetting: object({ value: text('The new value.') }, ['value']),
  FinalizeUpgrade: object({ version: text('The version that comes into force, such as 0.2.') }, ['version']),
  NoFields: object({}),
} as const;
