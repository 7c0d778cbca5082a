import { EMPTY_BYTES } from '@remora/base';
import { lockSpan, TTL_NEVER_MS } from '@remora/lock';
import { type Command, kvRoutingKey } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { DESCRIPTOR, put, range, StateBed, show } from '../../../test/support/state-bed.ts';
import { commitAt, prepare, prepared, resolve } from '../../../test/support/txn-bed.ts';

const LEASE = 7n;
const LOCK = { namespace: 'n', name: Buffer.from('lock') };
const at = (key: string): Buffer => kvRoutingKey(Buffer.from(key));
const SPAN = { start: at('m'), end: Buffer.from([4]) };

function putWith(key: string, lease: bigint): Command {
  const op = put(key, 'v', { lease });
  if (op.type !== 'put') throw new Error('a put is one');
  return { type: 'kv', op };
}

function acquire(lease: bigint, incarnation: number, token = 't', lock = LOCK): Command {
  const owner = { session: { lease, incarnation }, token };
  const times = { wait: true, waitUntilMs: 0, deadlineMs: 0, depthMax: 1 };
  return { type: 'lock', command: { type: 'acquire', lock, owner, data: EMPTY_BYTES, ...times } };
}

/** Two ranges behind a split at a place; the lease's record stays in the first. */
async function parted(place: Buffer, before: readonly Command[]): Promise<{ home: StateBed; other: StateBed }> {
  const home = new StateBed();
  await home.ok({ type: 'leaseGrant', id: LEASE, ttlMs: 5_000, attributes: {} });
  for (const command of before) await home.ok(command);
  const { epoch } = DESCRIPTOR;
  const replicas = [{ nodeId: 1, replicaId: 31 }];
  await home.ok({ type: 'split', at: place, epoch, childId: 3, replicas, keys: before.length, bytes: 0 });
  const [start] = home.children;
  if (start === undefined) throw new Error('a split makes a child');
  const other = new StateBed({ engine: home.engine, start });
  for (const bed of [home, other]) bed.block = { first: 10_000, count: 10_000 };
  return { home, other };
}

const incarnationOf = ({ state }: StateBed): number => state.leases.get(LEASE)?.incarnation ?? 0;

describe('a split that parts a lease from what belongs to it', () => {
  test('makes a reference, and the home knows where it is, also after a restart', async () => {
    const { home, other } = await parted(
      at('m'),
      ['a', 'x'].map((key) => putWith(key, LEASE)),
    );
    const incarnation = incarnationOf(home);
    for (const bed of [home, other]) {
      await bed.checkpoint();
      bed.crash();
    }
    expect(home.state.leases.get(LEASE)?.spans).toEqual([SPAN]);
    expect(other.state.references.get(LEASE)).toMatchObject({ incarnation, spans: [SPAN] });
    expect(other.state.references.keysOf(LEASE, incarnation).map(String)).toEqual(['x']);
    await other.ok(putWith('y', LEASE));
    expect(await other.run(putWith('z', 8n))).toMatchObject({ ok: false, code: 'LEASE_NOT_FOUND' });
  });

  test('has its end told there: keys go, locks are granted onward, and the record goes last', async () => {
    const before = [acquire(LEASE, 2), putWith('x', LEASE)];
    const { home, other } = await parted(Buffer.from(lockSpan(LOCK).start), before);
    await home.ok({ type: 'leaseGrant', id: 9n, ttlMs: 5_000, attributes: {} });
    const next = home.state.leases.get(9n)?.incarnation ?? 0;
    const span = { start: lockSpan(LOCK).start, end: SPAN.end };
    await other.ok({ type: 'leaseRefer', id: 9n, incarnation: next, span });
    await other.ok(acquire(9n, next, 'waits'));
    await home.ok({ type: 'leaseRevoke', id: LEASE, incarnation: 0 });
    const again = { type: 'leaseGrant', id: LEASE, ttlMs: 1, attributes: {} } as const;
    expect(await home.run(again)).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
    const end = { type: 'leaseEnd', id: LEASE, incarnation: 2, span } as const;
    expect(await other.ok(end)).toMatchObject({ covered: span, more: false });
    expect(other.notices).toMatchObject([{ owner: { token: 'waits' }, result: { type: 'granted' } }]);
    expect([other.state.keys, other.state.references.get(LEASE)]).toEqual([0, undefined]);
    await home.ok({ type: 'leaseSettle', id: LEASE, incarnation: 2, span });
    expect(home.state.leases.has(LEASE)).toBe(false);
    expect(await home.run(again)).toMatchObject({ ok: true });
  });
});

describe('a range knows one incarnation of a lease', () => {
  test('so it grants none, and refers to none, while an earlier one has something in it', async () => {
    const bed = new StateBed();
    const refer = { type: 'leaseRefer', id: LEASE, incarnation: 1, span: SPAN } as const;
    await bed.ok(refer); // its home lost it since
    const grant = { type: 'leaseGrant', id: LEASE, ttlMs: 5_000, attributes: {} } as const;
    const late = { requestId: 'r', deadlineMs: 9_000 };
    expect(await bed.run(grant, late)).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
    expect(await bed.run({ ...refer, incarnation: 2 })).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
    await bed.ok({ type: 'leaseEnd', id: LEASE, incarnation: 1, span: SPAN });
    expect(await bed.run(grant, late)).toMatchObject({ ok: true });
    expect(await bed.run(refer)).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
  });
});

describe('the end of a lease that has much in its home (LC1)', () => {
  const here = { start: Buffer.from([2]), end: Buffer.from([4]) };
  const lockOf = (i: number) => ({ namespace: 'n', name: Buffer.from(`l${String(i).padStart(4, '0')}`) });
  const grant = { type: 'leaseGrant', id: LEASE, ttlMs: 5_000, attributes: {} } as const;
  const revoke = { type: 'leaseRevoke', id: LEASE, incarnation: 0 } as const;

  /** 200 locks and 175 keys of the lease; others wait for the first lock and for the last one. */
  async function full(): Promise<{ readonly bed: StateBed; readonly incarnation: number }> {
    const bed = new StateBed();
    await bed.ok(grant);
    await bed.ok({ ...grant, id: 9n });
    const [incarnation, next] = [LEASE, 9n].map((id) => bed.state.leases.get(id)?.incarnation ?? 0);
    const commands = [
      ...Array.from({ length: 200 }, (_, i) => acquire(LEASE, incarnation ?? 0, 't', lockOf(i))),
      ...Array.from({ length: 175 }, (_, i) => putWith(`k${i}`, LEASE)),
      ...[0, 199].map((i) => acquire(9n, next ?? 0, `waits ${i}`, lockOf(i))),
    ];
    await bed.batch(commands.map((command) => ({ command })));
    return { bed, incarnation: incarnation ?? 0 };
  }

  test('takes so many in the entry that ends it, and the rest when its own range is told', async () => {
    const { bed, incarnation } = await full();
    await bed.ok(revoke);
    expect([bed.state.keys, bed.state.leases.get(LEASE)]).toEqual([125, undefined]);
    expect(bed.state.leases.ending(LEASE)?.spans).toEqual([here]);
    expect(await bed.run(putWith('k1', LEASE))).toMatchObject({ ok: false, code: 'LEASE_NOT_FOUND' });
    expect(await bed.run(grant)).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
    await bed.checkpoint();
    bed.crash();
    const end = { type: 'leaseEnd', id: LEASE, incarnation, span: here } as const;
    expect(await bed.ok(end)).toMatchObject({ more: false, covered: here });
    await bed.ok({ type: 'leaseSettle', id: LEASE, incarnation, span: here });
    expect([bed.state.keys, bed.state.leases.has(LEASE)]).toEqual([0, false]);
    expect(bed.notices.map(({ owner, result }) => [owner.token, result.type])).toEqual([
      ['waits 0', 'granted'],
      ['waits 199', 'granted'],
    ]);
    expect(await bed.run(grant)).toMatchObject({ ok: true });
  });

  test('waits for transactions over what an entry takes, and looks at nothing else', async () => {
    const { bed, incarnation } = await full();
    bed.state.descriptor = { ...bed.state.descriptor, revisionSource: 'master' };
    bed.block = { first: 10_000, count: 10_000 };
    await prepared(bed, prepare('t', 1, [put('k99', '2', { ignoreLease: true })])); // The last of the keys.
    let rows = 0;
    const scan = bed.engine.scanResident.bind(bed.engine);
    bed.engine.scanResident = (options) => {
      const found = scan(options);
      rows += found.length;
      return found;
    };
    await bed.ok(revoke);
    expect(rows).toBeLessThan(550);
    const end = { type: 'leaseEnd', id: LEASE, incarnation, span: here } as const;
    expect(await bed.run(end)).toMatchObject({ ok: false, details: { heldBy: 't' } });
    await bed.ok(resolve('t', commitAt(15_000), bed));
    expect(show(await bed.ok({ type: 'kv', op: range('k99') }))).toMatch(/^k99=2@15000/);
    expect(await bed.ok(end)).toMatchObject({ more: false });
    expect(bed.state.keys).toBe(0);
  });

  test('goes on in both parts of a split that comes between', async () => {
    const { bed: home, incarnation } = await full();
    await home.ok(revoke);
    const replicas = [{ nodeId: 1, replicaId: 31 }];
    const { epoch } = DESCRIPTOR;
    await home.ok({ type: 'split', at: at('k5'), epoch, childId: 3, replicas, keys: 1, bytes: 0 });
    const [start] = home.children;
    if (start === undefined) throw new Error('a split makes a child');
    const other = new StateBed({ engine: home.engine, start });
    for (const bed of [home, other]) bed.block = { first: 10_000, count: 10_000 };
    const parts = [
      { bed: home, span: { start: here.start, end: at('k5') } },
      { bed: other, span: { start: at('k5'), end: here.end } },
    ];
    for (const { bed, span } of parts) {
      const end = { type: 'leaseEnd', id: LEASE, incarnation, span: { start: span.start, end: here.end } } as const;
      expect(await bed.ok(end)).toMatchObject({ more: false, covered: span });
      expect(home.state.leases.has(LEASE)).toBe(true);
      await home.ok({ type: 'leaseSettle', id: LEASE, incarnation, span });
    }
    expect(home.state.leases.has(LEASE)).toBe(false);
    expect(await home.engine.scan({ start: at(''), end: here.end })).toEqual([]);
    expect(other.state.references.size).toBe(0);
  });
});

describe('the end of a lease in another range', () => {
  test('takes away so many keys in one entry, and lets no further one come to the lease meanwhile', async () => {
    const keys = Array.from({ length: 300 }, (_, i) => putWith(`x${i}`, LEASE));
    const { home, other } = await parted(at('m'), keys);
    const end = { type: 'leaseEnd', id: LEASE, incarnation: incarnationOf(home), span: SPAN } as const;
    expect(await other.ok(end)).toMatchObject({ more: true });
    expect(other.events.at(-1)?.events).toHaveLength(250);
    expect(await other.run(putWith('y', LEASE))).toMatchObject({ ok: false, code: 'LEASE_NOT_FOUND' });
    expect(await other.ok(end)).toMatchObject({ more: false });
    expect([other.events.at(-1)?.events.length, other.state.keys, other.state.references.size]).toEqual([50, 0, 0]);
  });

  test('does nothing to another incarnation, however late it is told', async () => {
    const { home, other } = await parted(at('m'), []);
    const incarnation = incarnationOf(home);
    await other.ok({ type: 'leaseRefer', id: LEASE, incarnation, span: SPAN });
    await other.ok(putWith('x', LEASE));
    const late = { type: 'leaseEnd', id: LEASE, incarnation: incarnation - 1, span: SPAN } as const;
    expect(await other.ok(late)).toMatchObject({ covered: SPAN, more: false });
    expect([other.state.keys, other.state.references.get(LEASE)?.spans]).toEqual([1, [SPAN]]);
    await home.ok({ type: 'leaseSettle', id: LEASE, incarnation, span: SPAN });
    expect(home.state.leases.get(LEASE)?.incarnation).toBe(incarnation); // it is alive: nothing is to be settled
  });

  test('says which part of the span the range has', async () => {
    const { other } = await parted(at('m'), []);
    const span = { start: at('p'), end: at('q') };
    expect(await other.ok({ type: 'leaseEnd', id: LEASE, incarnation: 5, span })).toMatchObject({ covered: span });
    const outside = { type: 'leaseEnd', id: LEASE, incarnation: 5, span: { start: at('a'), end: at('z') } } as const;
    expect(await other.run(outside)).toMatchObject({ ok: false, code: 'STALE_EPOCH' });
  });
});

describe('the end of a lease whose home has been merged with a range that referred to it', () => {
  test('is the end of it for the keys and locks of both at once, before it is told for those of the other', async () => {
    const place = Buffer.from(lockSpan(LOCK).start);
    const { home, other } = await parted(place, []);
    const incarnation = incarnationOf(home);
    const span = { start: place, end: Buffer.from([4]) };
    await home.ok({ type: 'leaseRegister', id: LEASE, incarnation, span });
    await other.ok({ type: 'leaseRefer', id: LEASE, incarnation, span });
    await other.ok(putWith('x', LEASE));
    home.neighbours = [other];
    const { epoch } = home.state.descriptor;
    const into = { targetId: home.state.rangeId, round: 0 };
    const result = await other.ok({ type: 'seal', epoch: other.state.descriptor.epoch, into });
    if (result.type !== 'seal') throw new Error('a seal is answered so');
    await home.ok({ type: 'merge', epoch, round: 0, source: result.sealed });
    await home.ok(acquire(LEASE, incarnation));
    await home.ok({ type: 'leaseRevoke', id: LEASE, incarnation });
    expect(await home.run(putWith('y', LEASE))).toMatchObject({ ok: false, code: 'LEASE_NOT_FOUND' });
    const expired = { type: 'lock', result: { type: 'refused', code: 'SESSION_EXPIRED' } };
    expect(await home.ok(acquire(LEASE, incarnation, 'later'))).toMatchObject(expired);
    const release: Command = {
      type: 'lock',
      command: {
        type: 'release',
        lock: LOCK,
        owner: { session: { lease: LEASE, incarnation }, token: 't' },
        all: true,
        deadlineMs: 0,
      },
    };
    expect(await home.ok(release)).toMatchObject(expired);
    expect(await home.ok({ type: 'leaseEnd', id: LEASE, incarnation, span })).toMatchObject({ more: false });
    expect([home.state.keys, home.state.references.size]).toEqual([0, 0]);
  });
});

describe('a change of a lease', () => {
  const condition = { heartbeatMs: 1_000, serverMisses: 3, holderMisses: 2 };

  test('is there after a restart, and what lies elsewhere of the lease is not forgotten', async () => {
    const { home } = await parted(at('m'), [putWith('x', LEASE)]);
    const incarnation = incarnationOf(home);
    const change = { type: 'leaseChange', id: LEASE, incarnation, number: 1, ttlMs: 3_000 } as const;
    expect(await home.ok({ ...change, condition })).toEqual({ type: 'leaseChange', ttlMs: 3_000 });
    await home.checkpoint();
    home.crash();
    const terms = { ttlMs: 3_000, change: 1, condition };
    expect(home.state.leases.get(LEASE)).toMatchObject({ incarnation, spans: [SPAN], ...terms });
    await home.ok({ ...change, number: 2, ttlMs: 9_000 });
    expect(home.state.leases.get(LEASE)).toMatchObject({ ttlMs: 9_000, change: 2 });
    expect(home.state.leases.get(LEASE)).not.toHaveProperty('condition');
  });

  test('that comes late, behind a later one, is refused; one that is repeated is answered again (LC4)', async () => {
    const home = new StateBed();
    const granted = await home.ok({ type: 'leaseGrant', id: LEASE, ttlMs: 5_000, attributes: {}, condition });
    if (granted.type !== 'leaseGrant') throw new Error('a grant answers as one');
    expect(home.state.leases.get(LEASE)).toMatchObject({ condition });
    const change = { type: 'leaseChange', id: LEASE, incarnation: granted.incarnation } as const;
    await home.ok({ ...change, number: 2, ttlMs: 60_000 });
    expect(await home.run({ ...change, number: 1, ttlMs: 1_000 })).toMatchObject({ code: 'INVALID_ARGUMENT' });
    await home.ok({ ...change, number: 2, ttlMs: 60_000 });
    expect(home.state.leases.get(LEASE)).toMatchObject({ ttlMs: 60_000, change: 2 });
  });

  test.each([
    { what: 'another incarnation', wrong: { incarnation: 1 }, code: 'LEASE_NOT_FOUND' },
    { what: 'an endless TTL', wrong: { ttlMs: 9_000_000_000_001 }, code: 'LEASE_TTL_TOO_LARGE' },
  ])('of $what is refused', async ({ wrong, code }) => {
    const home = new StateBed();
    const granted = await home.ok({ type: 'leaseGrant', id: LEASE, ttlMs: 5_000, attributes: {} });
    if (granted.type !== 'leaseGrant') throw new Error('a grant answers as one');
    const { incarnation } = granted;
    const change = { type: 'leaseChange', id: LEASE, incarnation, number: 1, ttlMs: 7_000, ...wrong } as const;
    expect(await home.run(change)).toMatchObject({ ok: false, code });
    expect(home.state.leases.get(LEASE)).toMatchObject({ ttlMs: 5_000, change: 0 });
  });
});

describe('the end of a lease that was seen to be empty (LC5)', () => {
  const between: readonly { what: string; commands: (incarnation: number) => readonly Command[]; code?: string }[] = [
    { what: 'nothing', commands: () => [] },
    { what: 'a key that goes again', commands: () => [putWith('a', LEASE), { type: 'kv', op: put('a', 'v') }] },
    { what: 'a key', commands: () => [putWith('a', LEASE)], code: 'INVALID_ARGUMENT' },
    { what: 'a lock', commands: (incarnation) => [acquire(LEASE, incarnation)], code: 'INVALID_ARGUMENT' },
    {
      what: 'a TTL that ends',
      commands: (incarnation) => [{ type: 'leaseChange', id: LEASE, incarnation, number: 2, ttlMs: 9_000 }],
      code: 'INVALID_ARGUMENT',
    },
    {
      what: 'its end and a new lease of that id',
      commands: (incarnation) => [
        { type: 'leaseRevoke', id: LEASE, incarnation },
        { type: 'leaseGrant', id: LEASE, ttlMs: 5_000, attributes: {} },
      ],
      code: 'LEASE_NOT_FOUND',
    },
  ];

  test.each(between)('comes after $what between the look and the end', async ({ commands, code }) => {
    const home = new StateBed();
    await home.ok({ type: 'leaseGrant', id: LEASE, ttlMs: 5_000, attributes: {} });
    const incarnation = incarnationOf(home);
    await home.ok({ type: 'leaseChange', id: LEASE, incarnation, number: 1, ttlMs: TTL_NEVER_MS });
    for (const command of commands(incarnation)) await home.ok(command);
    const before = [home.state.keys, home.state.leases.get(LEASE), home.state.revision];
    const end = { type: 'leaseRevoke', id: LEASE, incarnation, ifEmpty: true } as const;
    expect(await home.run(end)).toMatchObject(code === undefined ? { ok: true } : { ok: false, code });
    if (code === undefined) expect(home.state.leases.has(LEASE)).toBe(false);
    else expect([home.state.keys, home.state.leases.get(LEASE), home.state.revision]).toEqual(before);
  });

  test('is refused where a transaction has prepared a write with it', async () => {
    const { home } = await parted(at('m'), []);
    const incarnation = incarnationOf(home);
    await home.ok({ type: 'leaseChange', id: LEASE, incarnation, number: 1, ttlMs: TTL_NEVER_MS });
    await prepared(home, prepare('t', 1, [put('a', 'v', { lease: LEASE })]));
    const end = { type: 'leaseRevoke', id: LEASE, incarnation, ifEmpty: true } as const;
    expect(await home.run(end)).toMatchObject({ ok: false });
    expect(home.state.leases.has(LEASE)).toBe(true);
  });
});

describe('what is left of a lease', () => {
  test('is there after a restart, beside its terms, until its client is heard of', async () => {
    const home = new StateBed();
    const condition = { heartbeatMs: 1_000, serverMisses: 3, holderMisses: 2 };
    await home.ok({ type: 'leaseGrant', id: LEASE, ttlMs: 5_000, attributes: {}, condition });
    const before = home.state.leases.get(LEASE);
    const about = { type: 'leaseCheckpoint', id: LEASE, incarnation: incarnationOf(home), term: 1 } as const;
    expect(await home.ok({ ...about, remainingMs: 700 })).toEqual({ type: 'leaseCheckpoint' });
    await home.ok({ ...about, type: 'leaseChange', number: 1, ttlMs: 9_000, condition });
    await home.checkpoint();
    home.crash();
    const changed = { ...before, ttlMs: 9_000, change: 1 };
    expect(home.state.leases.get(LEASE)).toEqual({ ...changed, remainingMs: 700 });
    await home.ok({ ...about, remainingMs: undefined });
    expect(home.state.leases.get(LEASE)).toEqual(changed);
  });

  test.each([
    { what: 'an earlier term', wrong: { term: 0 }, code: 'NOT_LEADER' },
    { what: 'another incarnation', wrong: { incarnation: 1 }, code: 'LEASE_NOT_FOUND' },
  ])('by $what says nothing', async ({ wrong, code }) => {
    const home = new StateBed();
    await home.ok({ type: 'leaseGrant', id: LEASE, ttlMs: 5_000, attributes: {} });
    const about = { type: 'leaseCheckpoint', id: LEASE, incarnation: incarnationOf(home), term: 1 } as const;
    expect(await home.run({ ...about, remainingMs: 700, ...wrong })).toMatchObject({ ok: false, code });
    expect(home.state.leases.get(LEASE)).not.toHaveProperty('remainingMs');
  });
});

describe('a registration', () => {
  test('is taken of a lease that is alive, under its incarnation, once', async () => {
    const { home } = await parted(at('m'), []);
    const incarnation = incarnationOf(home);
    const register = { type: 'leaseRegister', id: LEASE, incarnation: 0, span: SPAN } as const;
    for (let i = 0; i < 2; i++) expect(await home.ok(register)).toEqual({ type: 'leaseRegister', incarnation });
    expect(home.state.leases.get(LEASE)?.spans).toEqual([SPAN]);
    const wrong = { ...register, incarnation: incarnation + 1 };
    expect(await home.run(wrong)).toMatchObject({ ok: false, code: 'LEASE_NOT_FOUND' });
    await home.ok({ type: 'leaseRevoke', id: LEASE, incarnation });
    expect(await home.run(register)).toMatchObject({ ok: false, code: 'LEASE_NOT_FOUND' });
  });
});
