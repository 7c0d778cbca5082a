import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { LockCommand } from '@remora/lock';
import { createLocalChannel, createRpcRegistry, type RangeRequest, rangeExecute } from '@remora/protocol';
import { expect, test } from 'vitest';
import { boot, replicaOf } from '../../../test/support/booted-store.ts';
import { CrashWorld } from '../../../test/support/crash-world.ts';
import { DESCRIPTOR } from '../../../test/support/state-bed.ts';
import { LeaderWaits } from './leader-waits.ts';
import { serveRanges } from './range-service.ts';

const RANGE = { ...DESCRIPTOR, replicas: [{ replicaId: 11, nodeId: 1, type: 'voter' as const }] };
const ACQUIRE: Extract<LockCommand, { readonly type: 'acquire' }> = {
  ...{ type: 'acquire', lock: { namespace: 'n', name: Buffer.from('l') }, wait: false, depthMax: 1 },
  ...{ owner: { session: { lease: 7n, incarnation: 2 }, token: 't' }, waitUntilMs: 0, deadlineMs: 0 },
  data: Buffer.alloc(0),
};

/** The calls of a range whose replica here does not lead: what reaches it is answered NOT_LEADER. */
async function serving() {
  const [clock, registry] = [new ManualClock(), createRpcRegistry()];
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  serveRanges(registry, {
    ...{ nodeId: 1, find: () => replica, checkpoint: async () => {} },
    leaderWaits: new LeaderWaits({ clock, nodeId: 1, look: () => new ServiceError('UNAVAILABLE', 'nobody asks') }),
  });
  const channel = createLocalChannel({ registry, clock });
  return (command: LockCommand, extra: Partial<RangeRequest>): string | undefined => {
    let told: ServiceError | undefined;
    const body = { kind: 'command', command: { type: 'lock', command } } as const;
    const { rangeId, epoch } = RANGE;
    const request = { rangeId, epoch, requestId: 'r', deadlineMs: 9_000, authRevision: 0, body, ...extra };
    channel.call(rangeExecute, request, { timeoutMs: 1_000 }, (error) => {
      told = error;
    });
    return told?.code;
  };
}

const MALFORMED: readonly { name: string; command?: Partial<typeof ACQUIRE>; request?: Partial<RangeRequest> }[] = [
  { name: 'an attempt that is no whole number', command: { attempt: 1.5 } },
  { name: 'an endless deadline', command: { deadlineMs: Number.POSITIVE_INFINITY } },
  {
    name: 'a session that no number of 63 bits names',
    command: { owner: { ...ACQUIRE.owner, session: { lease: 2n ** 64n, incarnation: 2 } } },
  },
  { name: 'permits by the half', command: { as: { type: 'permits', permits: 0.5, capacity: 3 } } },
  { name: 'too long a request id', request: { requestId: 'r'.repeat(10_000) } },
  { name: 'a request without a deadline', request: { deadlineMs: Number.NaN } },
];

test('a lock command of this process that the log could not read back is not proposed (RS1)', async () => {
  const ask = await serving();
  expect(ask(ACQUIRE, {})).toBe('NOT_LEADER');
  expect(ask({ ...ACQUIRE, as: { type: 'permits', permits: 1, capacity: 3 } }, {})).toBe('NOT_LEADER');
  const told = MALFORMED.map(
    ({ name, command, request }) => `${name}: ${ask({ ...ACQUIRE, ...command }, request ?? {})}`,
  );
  expect(told).toEqual(MALFORMED.map(({ name }) => `${name}: INVALID_ARGUMENT`));
});
