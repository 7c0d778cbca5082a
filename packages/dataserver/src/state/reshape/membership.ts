/**
 * The effect of membership changes on a range's descriptor.
 *
 * M1. The descriptor names the members of the group and their nodes; nothing else records the nodes. So a change that
 *     lets a replica join carries its node, and is not admitted without it.
 * M2. A node has at most one replica of a range, because it finds the replica by the range (store.ts T1).
 * M3. Only learners are removed: a voter is demoted first. A removed replica then has no vote that anyone could still
 *     need. The entry that removes it is on a majority of the voters, whose logs therefore know that the demotion is
 *     committed (raft/core/reconfigure.ts N1). So the replica may vanish at once, even while other members do not know.
 * M4. `confVersion` grows with each change of members or roles, and with nothing else. All of this follows from the
 *     descriptor, the change and the membership that Raft made of it, alike on every replica.
 * M5. After a forced change (raft/core/forced.ts) both numbers of the epoch are far above everything that the excluded
 *     replicas can have reached or reported: replicas that come back are recognized as outdated.
 */
import { assert, EMPTY_BYTES } from '@remora/base';
import { Epoch, type RangeDescriptor, schema, storedRow } from '@remora/protocol';
import type { ConfChange, ConfState } from '@remora/raft';

/** Where a replica lives. */
export interface ReplicaPlace {
  readonly replicaId: number;
  readonly nodeId: number;
}

const { field, list, struct, uint } = schema;

const PLACES = storedRow(
  'where new replicas live',
  struct('places', {
    places: field(
      list(
        struct('place', {
          replicaId: field(uint, 'The replica.'),
          nodeId: field(uint, 'The node that holds it.'),
        }),
      ),
      'The replicas that join.',
    ),
  }),
  { 1: 1 },
);

/** The context of a membership change: the nodes of the joining replicas. */
export function encodePlaces(places: readonly ReplicaPlace[]): Uint8Array {
  return places.length === 0 ? EMPTY_BYTES : PLACES.encode({ places });
}

/** The inverse. Throws an `InvariantError` for anything else. */
export function decodePlaces(context: Uint8Array): readonly ReplicaPlace[] {
  return context.length === 0 ? [] : PLACES.decode(context).places;
}

const KNOWN_EPOCH = storedRow(
  'the epoch of a range that goes on alone',
  struct('known epoch', { epoch: field(Epoch, 'The latest epoch that any surviving node knows of the range.') }),
  { 1: 1 },
);
/** M5. More changes than a range can go through before the loss of its majority is noticed. */
const EPOCHS_SKIPPED = 1_000_000;

/** The context of a forced change: the latest epoch of the range that any survivor knows. */
export function encodeKnownEpoch(epoch: Epoch): Uint8Array {
  return KNOWN_EPOCH.encode({ epoch });
}

/** Throws an `InvariantError` for anything else. */
function decodeKnownEpoch(context: Uint8Array): Epoch {
  return KNOWN_EPOCH.decode(context).epoch;
}

/** The descriptor after a replica goes on alone (M5). */
export function descriptorAlone(descriptor: RangeDescriptor, { steps, context }: ConfChange): RangeDescriptor {
  const known = decodeKnownEpoch(context);
  const { confVersion, version } = descriptor.epoch;
  return {
    ...descriptor,
    epoch: {
      confVersion: Math.max(confVersion, known.confVersion) + EPOCHS_SKIPPED,
      version: Math.max(version, known.version) + EPOCHS_SKIPPED,
    },
    replicas: descriptor.replicas
      .filter(({ replicaId }) => steps.some(({ replica }) => replica === replicaId))
      .map((replica) => ({ ...replica, type: 'voter' })),
  };
}

/** Whether a change takes effect in a range (M1, M2, M3). */
export function admitsChange({ replicas }: RangeDescriptor, { steps, context }: ConfChange): boolean {
  const nodeOf = new Map([...decodePlaces(context), ...replicas].map((place) => [place.replicaId, place.nodeId]));
  const voters = new Set(replicas.filter(({ type }) => type === 'voter').map(({ replicaId }) => replicaId));
  if (steps.some(({ type, replica }) => type === 'remove' && voters.has(replica))) return false; // M3
  const members = new Set(replicas.map(({ replicaId }) => replicaId));
  for (const { type, replica } of steps) if (type !== 'remove') members.add(replica);
  const nodes = [...members].map((replicaId) => nodeOf.get(replicaId));
  return !nodes.includes(undefined) && new Set(nodes).size === nodes.length;
}

/** The descriptor after a change that turned `before` into `conf` (M4). */
export function descriptorAfter(
  descriptor: RangeDescriptor,
  { before, conf, change }: { readonly before: ConfState; readonly conf: ConfState; readonly change: ConfChange },
): RangeDescriptor {
  if (isSame(before, conf)) return descriptor; // the change was impossible, or not admitted
  const { epoch, replicas } = descriptor;
  const nodeOf = new Map(
    [...decodePlaces(change.context), ...replicas].map((place) => [place.replicaId, place.nodeId]),
  );
  const voters = new Set([...conf.voters, ...conf.votersOutgoing]);
  const members = new Set([...voters, ...conf.learners, ...conf.learnersNext]);
  return {
    ...descriptor,
    epoch: { ...epoch, confVersion: epoch.confVersion + 1 },
    replicas: [...members].map((replicaId) => {
      const nodeId = nodeOf.get(replicaId);
      assert(nodeId !== undefined, `M1: where replica ${replicaId} of range ${descriptor.rangeId} lives is not known`);
      return { replicaId, nodeId, type: voters.has(replicaId) ? 'voter' : 'learner' };
    }),
  };
}

function isSame(a: ConfState, b: ConfState): boolean {
  const told = (conf: ConfState): string =>
    JSON.stringify([conf.voters, conf.votersOutgoing, conf.learners, conf.learnersNext, conf.autoLeave]);
  return told(a) === told(b);
}
