/**
 * Encoding of the masters' log entries and checkpoints. A program stops at a command of an unknown type, so new types
 * are written only once their feature is used.
 */
import { FIRST_AUTH } from '@remora/auth';
import { type Bytes, FIRST_VERSION } from '@remora/base';
import {
  AuthChange,
  AuthImage,
  ConfFields,
  Epoch,
  NodeDescriptor,
  NodeDuty,
  RangeDescriptor,
  ReplicaDescriptor,
  type Row,
  schema,
  storedRow,
} from '@remora/protocol';
import type { MasterCommand } from './master-commands.ts';
import type { MasterImage, SettingsImage } from './master-state.ts';

const { added, bytes, field, flatSpread, list, mapped, optional, spread, struct, text, textMap, uint, union, variant } =
  schema;
const SINCE = '0.1.0';

const DutyRecord = struct('duty', {
  nodeId: field(uint, 'The node.'),
  duty: field(NodeDuty, 'Its duty.'),
  untilMs: field(uint, 'Wall time at which a window of maintenance ends.'),
});

const PauseRecord = struct('pause', {
  name: field(text, 'The scheduler.'),
  untilMs: field(uint, 'Wall time at which the pause ends.'),
});

const EndedOperatorKind = struct('ended operator', {
  operatorId: field(uint, 'Its id.'),
  rangeId: field(uint, 'The range that it changed.'),
  partner: field(uint, 'The other range of a merge; 0: there is none.'),
  kind: field(text, 'Its purpose.'),
  status: field(text, 'How it ended.'),
  reason: field(text, 'Why it was begun.'),
  steps: field(list(text), 'Its steps in words.'),
  step: field(uint, 'How many steps were done.'),
  outcome: field(text, 'Why it ended with this status.'),
  createdMs: field(uint, 'Wall time at which it was begun.'),
  endedMs: field(uint, 'Wall time at which it ended.'),
});

const DESCRIPTOR = { descriptor: field(RangeDescriptor, 'The range.') };
const NODE_IDS = field(list(uint), 'Nodes.');

/** Each command is encoded as its tag and one field. */
const Command = union('master command', 'type', {
  registerNode: variant(1, { descriptor: field(NodeDescriptor, 'The node.') }),
  bootstrapRange: variant(2, { nodeIds: NODE_IDS }),
  changeRange: variant(3, DESCRIPTOR),
  liftRevisions: variant(4, { upTo: field(uint, 'The bound of revisions.') }),
  allocateReplicas: variant(5, { count: field(uint, 'How many ids of replicas.') }),
  changeSetting: variant(6, {
    change: spread(
      struct('change of a setting', {
        expected: field(uint, 'The version of the settings that it is meant for.'),
        name: field(text, 'The setting.'),
        text: field(text, 'Its value as people write it.'),
      }),
      'The change.',
    ),
  }),
  setDuty: variant(7, { duty: spread(DutyRecord, 'The duty.') }),
  pauseScheduler: variant(8, { pause: spread(PauseRecord, 'The pause.') }),
  describeRange: variant(9, DESCRIPTOR),
  askSplit: variant(10, DESCRIPTOR),
  bootstrapRanges: variant(11, {
    ranges: field(
      list(struct('first range', { start: field(bytes, 'Its first routing key.'), nodeIds: NODE_IDS })),
      'The first ranges.',
    ),
  }),
  askSplitByHand: variant(12, DESCRIPTOR),
  changeAuth: variant(13, { change: field(AuthChange, 'The change.') }),
  foundAuth: variant(14, {
    root: spread(
      struct('first user', {
        passwordHash: field(text, 'The hash of its password; empty: it has none.'),
        tokenKey: field(bytes, 'The key that signs tokens.'),
      }),
      'The user root.',
    ),
  }),
  finalizeUpgrade: variant(15, { version: field(uint, 'The version that comes into force.') }),
  recordOperator: variant(16, { operator: field(EndedOperatorKind, 'The operator.') }),
});
const COMMAND_ROW = storedRow(
  'a master command',
  struct('master command', {
    command: flatSpread(
      mapped(Command, toCommand, (command: MasterCommand) => fromCommand(command)),
      'The command.',
    ),
  }),
  { 1: 2 },
) as Row<MasterCommand>;

function toCommand(stored: schema.Infer<typeof Command>): MasterCommand {
  switch (stored.type) {
    case 'askSplit':
      return { ...stored, byHand: false };
    case 'askSplitByHand':
      return { ...stored, type: 'askSplit', byHand: true };
    // The bytes of a log entry are released with it, but first ranges are kept.
    case 'bootstrapRanges':
      return { ...stored, ranges: stored.ranges.map(({ start, nodeIds }) => ({ start: Buffer.from(start), nodeIds })) };
    default:
      return stored;
  }
}

function fromCommand(command: MasterCommand): schema.Infer<typeof Command> {
  return command.type === 'askSplit' && command.byHand ? { ...command, type: 'askSplitByHand' } : command;
}

/** Both throw an `InvariantError` for anything else. */
export const { encode: encodeMasterCommand, decode: decodeMasterCommand } = COMMAND_ROW;

const RANGE_ID = field(uint, 'The range.');
const later = <T>(absent: T): { readonly since: string; readonly absent: T } => ({ since: SINCE, absent });
const NONE: readonly never[] = [];
const FIRST_SETTINGS: SettingsImage = { version: 0, texts: new Map() };

const SettingsKind: schema.Kind<SettingsImage> = mapped(
  struct('settings', { version: field(uint, 'Grows with every change.'), texts: field(textMap, 'Values by name.') }),
  ({ version, texts }) => ({ version, texts: new Map(Object.entries(texts)) }),
  ({ version, texts }) => ({ version, texts: Object.fromEntries(texts) }),
);

/**
 * Fields of later versions are written only if they have a value: the bound of revisions (version 2), settings (3),
 * duties, pauses, splits and merges (4), gaps in the ids of nodes (5), ranges that begin where a person chose (6),
 * masters that are not those that founded the cluster (7), users and roles (8), the version in force (9), and operators
 * that have ended (10).
 */
const Image = struct('state of the masters', {
  applied: field(
    struct('applied', { index: field(uint, 'The index.'), term: field(uint, 'The term.') }),
    'The last entry that is applied.',
  ),
  conf: field(ConfFields, 'The configuration of the group of the masters.'),
  next: spread(
    struct('next ids', {
      nextNodeId: field(uint, 'The next id of a node.'),
      nextRangeId: field(uint, 'The next id of a range.'),
      nextReplicaId: field(uint, 'The next id of a replica.'),
    }),
    'Ids that are allocated next.',
  ),
  nodes: field(list(NodeDescriptor), 'The nodes.'),
  ranges: field(list(RangeDescriptor), 'The ranges.'),
  revisionBound: added(field(uint, 'No revision above it was allocated.'), later(0)),
  settings: added(field(SettingsKind, 'The settings of the cluster.'), { since: SINCE, absent: FIRST_SETTINGS }),
  duties: added(field(list(DutyRecord), 'Duties of nodes that do not just serve.'), later(NONE)),
  pauses: added(field(list(PauseRecord), 'Pauses of schedulers.'), later(NONE)),
  asked: added(
    field(
      list(
        struct('asked split', {
          rangeId: RANGE_ID,
          epoch: field(Epoch, 'Its epoch when it asked.'),
          childId: field(uint, 'The id of the child.'),
          replicas: field(list(ReplicaDescriptor), 'The replicas of the child.'),
        }),
      ),
      'Ids that were allocated for splits.',
    ),
    later(NONE),
  ),
  ended: added(
    field(
      list(struct('ended range', { rangeId: RANGE_ID, into: field(uint, 'The range that has its keys.') })),
      'Ranges that were merged away.',
    ),
    later(NONE),
  ),
  forgottenNodes: added(
    field(
      list(struct('gap in ids', { from: field(uint, 'The first id.'), to: field(uint, 'The last id.') })),
      'Ids of nodes that may have been allocated without a record.',
    ),
    later(NONE),
  ),
  chosen: added(field(list(uint), 'Ranges that begin where people chose.'), later(NONE)),
  formerMasters: added(field(list(uint), 'Nodes that have left the group of the masters.'), later(NONE)),
  mastersWanted: added(
    field(optional(uint), 'How many masters there should be; absent: as many as there are.'),
    later(undefined),
  ),
  auth: added(field(AuthImage, 'Users, roles and permissions.'), { since: SINCE, absent: FIRST_AUTH }),
  clusterVersion: added(field(uint, 'The version in force.'), later(FIRST_VERSION)),
  operators: added(field(list(EndedOperatorKind), 'Operators that have ended, oldest first.'), later(NONE)),
});
const IMAGE_ROW = storedRow("the master's state", Image, {
  1: 5,
  2: 6,
  3: 7,
  4: 11,
  5: 12,
  6: 13,
  7: 15,
  8: 16,
  9: 17,
  10: 18,
});

export function encodeMasterImage(image: MasterImage): Buffer {
  const { conf, formerMasters, mastersWanted, settings } = image;
  const asFounded = formerMasters.length === 0 && mastersWanted === conf.voters.length;
  return IMAGE_ROW.encode({
    ...image,
    settings: settings.version === 0 ? FIRST_SETTINGS : settings,
    mastersWanted: asFounded ? undefined : mastersWanted,
  });
}

/** Throws an `InvariantError` for anything else. */
export function decodeMasterImage(bytes: Bytes): MasterImage {
  const { mastersWanted, ...image } = IMAGE_ROW.decode(bytes);
  return { ...image, mastersWanted: mastersWanted ?? image.conf.voters.length };
}
