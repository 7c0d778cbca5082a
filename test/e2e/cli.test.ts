/** The `remora` command as its users run it, against a cluster of one node. */
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { RemoraCommand, type Run } from './command.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { Cluster } from './harness.ts';
import { describeLockCommands } from './lock-commands/suite.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 1 });
});
afterAll(() => cluster.stop());

const command = new RemoraCommand(() => cluster.endpoints);
afterEach(() => command.endAll());
const begin = command.begin.bind(command);
const remora = command.run.bind(command);
const json = command.json.bind(command);

describe('remora kv', () => {
  test('put, get and delete, for people and for programs', async () => {
    expect((await remora('kv', 'put', 'k/1', 'one')).out).toMatch(/^revision \d+\n$/);
    await remora('kv', 'put', 'k/2', 'two');
    // Nothing but the value, so that it can go into a file.
    expect(await remora('kv', 'get', 'k/1')).toEqual({ code: 0, out: 'one', err: '' });
    const anyReplica = ['kv', 'get', 'k/1', '--serializable'];
    await eventually('a replica has it', async () => (await remora(...anyReplica)).out === 'one');
    expect((await remora('kv', 'get', '--prefix', 'k/')).out).toBe('k/1  one\nk/2  two\n');
    expect(await remora('kv', 'get', '--prefix', 'k/', '--keys-only', '--limit', '1')).toEqual({
      ...{ code: 0, out: 'k/1\n' },
      err: 'shown 1 of 2 pairs; raise --limit to see more\n',
    });
    expect(await remora('kv', 'delete', '--prefix', '')).toMatchObject({
      ...{ code: 2, out: '' },
      err: expect.stringContaining('add --all'),
    });
    expect(await json('kv', 'get', 'k/2')).toMatchObject({
      more: false,
      kvs: [{ key: 'k/2', value: 'two', version: 1 }],
    });
    expect((await remora('kv', 'delete', 'k/1')).out).toBe('deleted 1\n');
    expect(await json('kv', 'del', '--prefix', 'k/')).toMatchObject({ deleted: 1 });
  });

  test('a key that does not exist is exit code 1, and says so', async () => {
    expect(await remora('kv', 'get', 'nowhere')).toEqual({
      code: 1,
      out: '',
      err: 'remora: key not found: nowhere\n',
    });
    expect(await remora('kv', 'get', 'nowhere', '--json')).toMatchObject({
      code: 1,
      out: expect.stringContaining('"kvs":[]'),
    });
    expect(await remora('kv', 'del', 'nowhere')).toMatchObject({ code: 0, out: 'deleted 0\n' });
  });

  test('bytes that are no text come back as they went in', async () => {
    const input = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    expect(await begin(['kv', 'put', 'binary', '-'], { input }).ended).toMatchObject({ code: 0 });
    expect((await remora('kv', 'get', 'binary')).out).toBe(input.toString('latin1'));
    expect(await json('kv', 'get', 'binary')).toMatchObject({ kvs: [{ value: { base64: input.toString('base64') } }] });
    expect((await remora('kv', 'get', '--prefix', 'binary')).out).toMatch(/^binary {2}\\x00\\x01.* !"#/);
  });

  test('put and delete can require that a lock is held by the grant that is named', async () => {
    const held = begin(['lock', 'run', 'k/lock', '--', 'sh', '-c', 'echo "$REMORA_LOCK_VERSION"; exec sleep 60']);
    const version = await eventually('it is held', async () => held.out.trim() || undefined);
    const under = (found: string) => ['--lock', 'k/lock', '--lock-version', found];
    expect((await remora('kv', 'put', 'k/3', 'three', ...under(version))).out).toMatch(/^revision/);
    const stale = await remora('kv', 'delete', 'k/3', ...under(String(Number(version) - 1)));
    expect(stale).toMatchObject({ code: 1, err: expect.stringContaining('nothing was written') });
    expect(await remora('kv', 'delete', 'k/3', ...under(version))).toMatchObject({ out: 'deleted 1\n' });
    expect(await remora('kv', 'put', 'k/3', 'x', '--lock', 'k/lock')).toMatchObject({ code: 2 });
  });

  test('an older revision can be read', async () => {
    const { revision } = (await json('kv', 'put', 'aged', 'young')) as { revision: number };
    await remora('kv', 'put', 'aged', 'old');
    expect((await remora('kv', 'get', 'aged', '--revision', String(revision))).out).toBe('young');
    const future = await remora('kv', 'get', 'aged', '--revision', String(revision + 1_000));
    expect(future).toMatchObject({ code: 1, err: expect.stringContaining('(FUTURE_REVISION)') });
  });

  test('watch prints changes as they happen, those of the past too, and ends well by a signal', async () => {
    const { revision } = (await json('kv', 'put', 'w/1', 'a')) as { revision: number };
    const lines = begin(['kv', 'watch', '--prefix', 'w/', '--revision', String(revision)]);
    const objects = begin(['kv', 'watch', 'w/1', '--json', '--revision', String(revision)]);
    await eventually('the past', () => lines.out !== '' && objects.out !== '');
    await remora('kv', 'put', 'w/2', 'b');
    await remora('kv', 'del', 'w/1');
    const text = `PUT     ${revision}  w/1  a\nPUT     ${revision + 1}  w/2  b\nDELETE  ${revision + 2}  w/1\n`;
    await eventually('all changes', () => lines.out === text && objects.out.split('\n').length === 3);
    const types = objects.out
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { type: string }).type);
    expect(types).toEqual(['put', 'delete']);
    lines.child.kill('SIGTERM');
    objects.child.kill('SIGINT');
    expect([(await lines.ended).code, (await objects.ended).code]).toEqual([0, 0]);
  });
});

describe('remora lock', () => {
  const hold = (name: string, ...flags: string[]): Run => begin(['lock', 'run', ...flags, name, '--', 'sleep', '60']);
  const held = (name: string) => eventually(`${name} is held`, async () => (await json('lock', 'show', name)) !== null);

  test('run passes on the exit code and tells the command name and version of the lock', async () => {
    const show = 'echo "$REMORA_LOCK_NAMESPACE/$REMORA_LOCK_NAME:$REMORA_LOCK_VERSION"; cat >&2; exit 7';
    const run = await begin(['lock', 'run', 'r/1', '--', 'sh', '-c', show], { input: Buffer.from('input') }).ended;
    expect(run).toMatchObject({ code: 7, err: 'input' });
    const version = Number(/^default\/r\/1:(\d+)\n$/.exec(run.out)?.[1]);
    expect(version).toBeGreaterThan(0);
    const again = await remora('lock', 'run', '--namespace', 'jobs', 'r/1', '--', 'sh', '-c', show);
    expect(Number(/^jobs\/r\/1:(\d+)\n$/.exec(again.out)?.[1])).toBeGreaterThan(version);
    // Released, not left to the session's end.
    expect(await remora('lock', 'show', 'r/1')).toEqual({ code: 0, out: 'r/1 is free\n', err: '' });
  });

  test('a command goes on under its lock when nobody hears any more what is said of it', async () => {
    const run = begin(['lock', 'run', 'unheard', '--', 'sh', '-c', 'echo runs; read line; exit 7'], { open: true });
    await eventually('it runs', async () => run.out.trim() || undefined);
    run.child.stderr?.destroy();
    // Its holder is told of it, and says so.
    expect((await remora('lock', 'revoke', '--wait', '2s', 'unheard')).code).toBe(75);
    expect((await json('lock', 'show', 'unheard')) as object).toMatchObject({ holders: [{}] });
    run.child.stdin?.end('go on\n');
    expect((await run.ended).code).toBe(7);
  });

  test('a signal reaches the command, whose end is the exit code', async () => {
    const run = begin([
      'lock',
      'run',
      'r/2',
      '--',
      'sh',
      '-c',
      'trap "exit 9" TERM; echo on; while :; do sleep 0.1; done',
    ]);
    await eventually('it runs', () => run.out === 'on\n');
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(9);
    const killed = await remora('lock', 'run', 'r/2', '--', 'sh', '-c', 'kill -KILL $$');
    expect(killed.code).toBe(137);
    const missing = await remora('lock', 'run', 'r/2', '--', 'no-such-program');
    expect(missing).toMatchObject({ code: 127, err: 'remora: cannot run no-such-program: command not found\n' });
    const election = await remora('election', 'run', 'r/2', '--', '/tmp');
    expect(election).toMatchObject({ code: 126, err: 'remora: cannot run /tmp: it is not executable\n' });
    expect((await remora('lock', 'show', 'r/2')).out).toBe('r/2 is free\n');
  });

  test('run gives up with 75 when the lock is taken: at once, or after its wait', async () => {
    const holder = hold('busy');
    await held('busy');
    const none = await remora('lock', 'run', '--wait', '0', 'busy', '--', 'echo', 'never');
    const by = `, held by session [0-9a-f]+, host .+, pid ${holder.child.pid} since .+Z\n$`;
    expect(none).toEqual({ code: 75, out: '', err: expect.stringMatching(`^remora: busy is taken${by}`) });
    // Before that it may say that it waits.
    const some = await remora('lock', 'run', '--wait', '5s', 'busy', '--', 'echo', 'never');
    const late = new RegExp(`(^|\\n)remora: busy is taken and did not become free within 5s${by}`);
    expect(some).toEqual({ code: 75, out: '', err: expect.stringMatching(late) });
  });

  test('what a run held that was killed is given back by the next one, unless it is named nowhere', async () => {
    const killed = async (name: string, ...flags: string[]): Promise<void> => {
      // The command outlives it, but not for long; to be seen as held takes some time.
      const run = begin(['lock', 'run', '--ttl', '10m', ...flags, name, '--', 'sleep', '10']);
      await held(name);
      run.child.kill('SIGKILL');
      await once(run.child, 'exit');
    };
    await killed('left/1');
    await killed('left/2', '--no-journal');
    expect(await remora('lock', 'run', '--wait', '20s', 'left/1', '--', 'echo', 'mine')).toMatchObject({ code: 0 });
    expect(await remora('lock', 'run', '--wait', '0', 'left/2', '--', 'echo', 'never')).toMatchObject({ code: 75 });
    await remora('lock', 'release', '--force', 'left/2');
  });

  test('run waits for its turn as long as it takes, and a signal gives up the wait', async () => {
    const first = hold('turn');
    await held('turn');
    const second = begin(['lock', 'run', 'turn', '--', 'echo', 'mine']);
    const third = begin(['lock', 'run', 'turn', '--', 'echo', 'never']);
    await eventually('two wait', async () => ((await json('lock', 'show', 'turn')) as State).waiterCount === 2);
    const said = new RegExp(`^remora: waiting for turn, held by session .+, pid ${first.child.pid} since .+Z\n$`);
    await eventually('each has said for whom', () => [second, third].every(({ err }) => said.test(err)));
    third.child.kill('SIGINT');
    expect(await third.ended).toMatchObject({ code: 130, out: '' });
    first.child.kill('SIGTERM');
    expect(await second.ended).toMatchObject({ code: 0, out: 'mine\n', err: expect.stringMatching(said) });
    // Nothing where it was granted at once.
    expect(await remora('lock', 'run', 'turn', '--', 'echo', 'mine')).toEqual({ code: 0, out: 'mine\n', err: '' });
  });

  test('a lock that is taken away stops the command, with 76', async () => {
    const script = 'trap "echo stopped; exit 0" TERM; echo on; while :; do sleep 0.1; done';
    const run = begin(['lock', 'run', 'lost', '--', 'sh', '-c', script]);
    await eventually('it runs', () => run.out === 'on\n');
    expect(await remora('lock', 'release', 'lost')).toMatchObject({ code: 2, err: expect.stringContaining('--force') });
    expect(run.alive).toBe(true);
    expect(await remora('lock', 'release', '--force', 'lost')).toEqual({ code: 0, out: 'released lost\n', err: '' });
    const ended = await run.ended;
    expect(ended).toMatchObject({ code: 76, out: 'on\nstopped\n' });
    expect(ended.err).toMatch(/^remora: the lock was lost \(.+\); stopping the command\n/);
    const nobody = await remora('lock', 'release', '--force', 'lost');
    expect(nobody).toMatchObject({ code: 1, err: expect.stringContaining('LOCK_NOT_HELD') });
  });

  test('a command whose health check fails is stopped, and its lock is free', async () => {
    const health = ['--health-cmd', 'false', '--health-interval', '50ms', '--health-failures', '2'];
    const ended = await begin(['lock', 'run', ...health, 'unwell', '--', 'sleep', '60']).ended;
    expect(ended).toMatchObject({
      code: 76,
      err: expect.stringContaining('2 times in a row, the last time because it exited with code 1)'),
    });
  });

  test('a lock that was held for as long as it may be is free when its command has ended', async () => {
    const script = 'trap "" TERM; sleep 3';
    const limited = begin(['lock', 'run', '--ttl', '5m', '--max-hold', '1s', 'limited', '--', 'sh', '-c', script]);
    expect(await limited.ended).toMatchObject({ code: 76, err: expect.stringContaining('its maxHold is over') });
    expect((await remora('lock', 'show', 'limited')).out).toBe('limited is free\n');
  });

  test('a command that does not stop when the lock is lost is killed', async () => {
    const script = 'trap "" TERM; echo on; for i in $(seq 300); do sleep 0.1; done';
    const run = begin(['lock', 'run', '--kill-after', '200ms', 'stubborn', '--', 'sh', '-c', script]);
    await eventually('it runs', () => run.out === 'on\n');
    await remora('lock', 'release', '--force', '--by', 'ops', '--reason', 'it is stubborn', 'stubborn');
    expect((await remora('lock', 'show', 'stubborn')).out).toMatch(/taken by force from version \d+ by ops, .+: it is/);
    expect((await run.ended).code).toBe(76);
  });

  test('ls and show tell who holds and who waits', async () => {
    hold('s/1', '--data', 'batch 7');
    hold('s/2');
    await Promise.all([held('s/1'), held('s/2')]);
    hold('s/1');
    await eventually('one waits', async () => ((await json('lock', 'show', 's/1')) as State).waiterCount === 1);
    const [head = '', ...rows] = (await remora('lock', 'ls', '--prefix', 's/')).out.trim().split('\n');
    expect(head.split(/ {2,}/)).toEqual(['NAME', 'KIND', 'HELD', 'VERSION', 'SINCE', 'SESSION', 'DATA', 'WAITING']);
    expect(rows.map((row) => row.split(/ {2,}/)[0])).toEqual(['s/1', 's/2']);
    expect(rows[0]).toMatch(/batch 7 +1$/);
    const list = (await json('lock', 'ls', '--prefix', 's/', '--limit', '1')) as { locks: State[]; more: boolean };
    expect([list.locks.map(({ name }) => name), list.more]).toEqual([['s/1'], true]);
    const text = (await remora('lock', 'show', 's/1')).out;
    for (const part of ['s/1 in default: exclusive, 1 held', 'HOLDER', 'batch 7', 'POSITION', 'WAITER'])
      expect(text).toContain(part);
    expect(text).toMatch(/DEPTH +TTL +REMAINING .+\n.+ 1 +10s +\d/);
    expect(await json('lock', 'show', 'nothing')).toBeNull();
    await remora('lock', 'run', '--keep-data', '--data', 'x', 's/0', '--', 'true');
    const listed = async (...flags: string[]) => {
      const { locks, more } = (await json('lock', 'ls', '--prefix', 's/', ...flags)) as {
        locks: State[];
        more: boolean;
      };
      return [locks.map(({ name }) => name), more];
    };
    expect(await listed()).toEqual([['s/1', 's/2'], false]);
    expect(await listed('--limit', '2')).toEqual([['s/1', 's/2'], false]);
    expect(await listed('--all')).toEqual([['s/0', 's/1', 's/2'], false]);
    expect(await listed('--all', '--limit', '2')).toEqual([['s/0', 's/1'], true]);
    const version = Number(rows[0]?.split(/ {2,}/)[3]);
    expect(await remora('lock', 'check', 's/1', String(version))).toMatchObject({
      code: 0,
      out: `${version} is current\n`,
    });
    expect(await remora('lock', 'check', 's/1', String(version - 1), '--json')).toMatchObject({
      ...{ code: 76, out: '{"current":false}\n' },
    });
    expect((await remora('lock', 'check', 's/1', 'x')).code).toBe(2);
  });

  test('watch prints how a lock is and what happens to it, of one or of all that begin so', async () => {
    const one = begin(['lock', 'watch', 'w/1']);
    const all = begin(['lock', 'watch', '--prefix', 'w/', '--json']);
    await eventually('both watch', async () => one.out.includes('free') && all.out.includes('live'));
    expect((await remora('lock', 'run', '--data', 'job', 'w/1', '--', 'true')).code).toBe(0);
    await eventually('all is told', async () => [one, all].every(({ out }) => out.includes('released')));
    expect(one.out).toMatch(/^\d+ {2}w\/1 {2}free\n\d+ {2}w\/1 {2}acquired by .+, job\n\d+ {2}w\/1 {2}released: /);
    const told = all.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; name?: string; data?: string });
    expect(told.map(({ type }) => type)).toEqual(['begin', 'live', 'acquired', 'released']);
    expect(told[2]).toMatchObject({ name: 'w/1', data: 'job', mode: 'exclusive', depth: 1, waited: false });
  });

  test('session ls and show tell whose locks they are, and close ends them', async () => {
    const run = hold('session/1');
    await held('session/1');
    const [{ session = '' } = {}] = ((await json('lock', 'show', 'session/1')) as State).holders;
    const { sessions } = (await json('session', 'ls', '--attribute', 'host=')) as { sessions: { session: string }[] };
    expect(sessions.map((each) => each.session)).toContain(session);
    const shown = (await remora('session', 'show', session)).out;
    for (const part of [`session ${session}: TTL 10s`, 'pid=', 'session/1', 'holds']) expect(shown).toContain(part);
    const { incarnation } = (await json('session', 'show', session)) as { incarnation: number };
    const byHttp = `${session}.${incarnation}`; // as it is answered there
    expect(await json('session', 'show', byHttp)).toMatchObject({ session, incarnation });
    for (const what of ['show', 'close']) {
      const other = await remora('session', what, `${session}.${incarnation + 1}`);
      expect(other).toMatchObject({ code: 1, err: `remora: session not found: ${session}\n` });
    }
    expect(await remora('session', 'close', byHttp)).toMatchObject({ code: 0, out: `closed ${session}\n` });
    expect((await run.ended).code).toBe(76);
    hold('session/2');
    await held('session/2');
    const [{ session: next = '' } = {}] = ((await json('lock', 'show', 'session/2')) as State).holders;
    expect(await remora('session', 'close', next)).toMatchObject({ code: 0, out: `closed ${next}\n` });
    expect(await remora('session', 'show', 'nonsense')).toMatchObject({ code: 2 });
  });

  test('run --shared shares a lock with others who do, and with nobody who does not', async () => {
    hold('k/rw', '--shared');
    await held('k/rw');
    expect(await remora('lock', 'run', '--shared', '--wait', '0', 'k/rw', '--', 'echo', 'mine')).toMatchObject({
      code: 0,
      out: 'mine\n',
    });
    expect((await remora('lock', 'run', '--wait', '0', 'k/rw', '--', 'echo', 'never')).code).toBe(75);
    hold('k/rw');
    await eventually('one waits', async () => ((await json('lock', 'show', 'k/rw')) as State).waiterCount === 1);
    expect((await remora('lock', 'show', 'k/rw')).out).toMatch(/^k\/rw in default: shared, 1 held\n/);
    expect((await remora('lock', 'run', '--shared', '--wait', '0', 'k/rw', '--', 'echo', 'never')).code).toBe(75);
  });

  test('barrier wait goes on when nobody holds the lock, or when all parties are there', async () => {
    const migration = hold('gate');
    await held('gate');
    expect((await remora('barrier', 'wait', '--wait', '0', 'gate')).code).toBe(75);
    const waiting = begin(['barrier', 'wait', 'gate']);
    await eventually('one waits', async () => ((await json('lock', 'show', 'gate')) as State).passing === 1);
    expect((await remora('barrier', 'lift', 'gate')).out).toBe('lifted gate\n');
    expect(await waiting.ended).toMatchObject({ code: 0, out: 'passed gate\n' });
    expect((await migration.ended).code).toBe(76);
    const parties = ['--parties', '2', '--wait', '20s', 'round'];
    const round = [
      begin(['barrier', 'wait', ...parties]),
      begin(['barrier', 'run', ...parties, '--', 'sh', '-c', 'exit 7']),
    ];
    expect((await Promise.all(round.map((run) => run.ended))).map(({ code }) => code)).toEqual([0, 7]);
    expect(await json('lock', 'show', 'round')).toBeNull();
    // One whose command has ended waits for the others until it is told not to; one whose command cannot run does not.
    const stays = begin(['barrier', 'run', ...parties, '--', 'sleep', '60']);
    const leaves = begin(['barrier', 'run', ...parties, '--', 'sh', '-c', 'echo ran; exit 3']);
    await eventually('both are there', async () => leaves.out === 'ran\n');
    await eventually('one waits to leave', async () => ((await json('lock', 'show', 'round')) as State).passing === 1);
    leaves.child.kill('SIGTERM');
    expect(await leaves.ended).toMatchObject({ code: 3, err: expect.stringContaining('did not end together') });
    expect((await remora('barrier', 'run', '--parties', '1', 'round', '--', '/no/such/program')).code).toBe(127);
    stays.child.kill('SIGTERM');
    expect((await stays.ended).code).toBe(143);
    const alone = await remora('barrier', 'run', '--parties', '2', '--wait', '100ms', 'round', '--', 'echo', 'never');
    expect(alone).toMatchObject({ code: 75, out: '' });
  });

  test('run --keep-data leaves its data with the lock, for the next run and for show, until they are forgotten', async () => {
    const show = ['sh', '-c', 'echo "[$REMORA_LOCK_PREVIOUS_DATA]"'];
    expect((await remora('lock', 'run', '--keep-data', '--data', 'row 7', 'kept', '--', ...show)).out).toBe('[]\n');
    expect((await remora('lock', 'run', 'kept', '--', ...show)).out).toBe('[row 7]\n');
    expect((await remora('lock', 'show', 'kept')).out).toContain('data kept by an earlier holder: row 7');
    expect((await remora('lock', 'forget', 'kept')).out).toBe('deleted what was kept with kept\n');
    expect(await json('lock', 'show', 'kept')).toBeNull();
  });

  test('run --permits takes permits of a semaphore, and capacity says how many there are', async () => {
    hold('k/sem', '--permits', '2', '--capacity', '2');
    await held('k/sem');
    const one = ['lock', 'run', '--permits', '1', '--capacity', '2', '--wait', '0', 'k/sem', '--', 'echo', 'mine'];
    expect((await remora(...one)).code).toBe(75);
    expect(await remora('lock', 'capacity', 'k/sem', '3')).toEqual({ code: 0, out: 'k/sem has 3 permits\n', err: '' });
    expect(await remora(...one)).toMatchObject({ code: 0, out: 'mine\n' });
    expect(await json('lock', 'show', 'k/sem')).toMatchObject({ kind: 'semaphore', permits: 2, capacity: 3 });
    expect((await remora('lock', 'ls', '--prefix', 'k/sem')).out).toMatch(/\nk\/sem +semaphore +2 of 3 /);
    const asLock = await remora('lock', 'run', '--wait', '0', 'k/sem', '--', 'echo', 'never');
    expect(asLock).toMatchObject({ code: 1, err: expect.stringContaining('semaphore') });
    const alone = await remora('lock', 'run', '--permits', '1', 'k/sem', '--', 'echo', 'never');
    expect(alone).toMatchObject({ code: 2, err: expect.stringContaining('--capacity') });
    await remora('lock', 'release', '--force', 'k/sem');
    expect((await remora('lock', 'capacity', 'k/sem', '0')).out).toBe('removed the capacity of k/sem\n');
    // That it was taken by force is all that is left of it.
    expect(await json('lock', 'show', 'k/sem')).toMatchObject({ kind: 'exclusive', holderCount: 0, forced: {} });
    await remora('lock', 'forget', 'k/sem');
    expect(await json('lock', 'show', 'k/sem')).toBeNull();
  });
});

interface State {
  readonly name: string;
  readonly waiterCount: number;
  readonly passing?: number;
  readonly holders: readonly { readonly session: string }[];
}

describe('remora status', () => {
  test('shows nodes with their roles, ranges with their leaders, the revision, and how far behind replicas are', async () => {
    const { revision } = (await json('kv', 'put', 'counted', 'x')) as { revision: number };
    const { code, out } = await remora('status');
    expect(code).toBe(0);
    expect(out).toMatch(/^cluster [0-9a-f]+ {2}master n1\n/);
    expect(out).toMatch(/ID +NAME +STATE +ROLES +CLIENT +HTTP +VERSION\n1 +n1 +up +master,data,gateway +127/);
    expect(out).toMatch(/RANGE +EPOCH +LEADER +REPLICAS\n\d+ +1\.1 +n1 +n1\n/);
    expect(out).toMatch(new RegExp(`range \\d+: revision ${revision}, term \\d+, commit \\d+, applied \\d+; `));
    expect(out).toMatch(/REPLICA +NODE +STATE +LOG BEHIND +COMMIT BEHIND\n\d+ +n1 +leader +0 +0\n/);
    expect(await json('status')).toMatchObject({
      view: { nodes: [{ descriptor: { name: 'n1' }, state: 'up' }], masterLeader: 1 },
      range: { leaderNode: 1, revision, replicas: [{ nodeId: 1, state: 'leader' }] },
    });
  });
});

describe('lock commands of others', () => {
  describeLockCommands(command, () => cluster.endpoints[0] ?? '');
});

describe('finding a cluster', () => {
  const commands: readonly (readonly string[])[] = [
    ['kv', 'get', 'k'],
    ['lock', 'run', 'l', '--', 'true'],
    ['status'],
    ['admin', 'check'],
  ];

  /** So many that a busy machine, too, is through long before it had tried 3 s at each. */
  const ENDPOINTS = 20;

  test('nobody at the endpoints is exit code 69 within seconds, with a hint', async () => {
    const ports = await freePorts('127.0.0.1', ENDPOINTS);
    const REMORA_ENDPOINTS = ports.map((port) => `127.0.0.1:${port}`).join(',');
    const started = performance.now();
    const ends = await Promise.all(commands.map((args) => begin(args, { env: { REMORA_ENDPOINTS } }).ended));
    // Each tries for 3 s in all, not for 3 s at each of its endpoints.
    expect(performance.now() - started).toBeLessThan(ENDPOINTS * 3_000);
    for (const { code, out, err } of ends) {
      expect([code, out]).toEqual([69, '']);
      expect(err).toContain(`no node answers at ${REMORA_ENDPOINTS.replaceAll(',', ', ')} (tried for 3s)`);
      expect(err).toContain('remora dev');
    }
  });

  test('--endpoints goes before the variable; one living node among dead ones is enough', async () => {
    const [port] = await freePorts('127.0.0.1', 1);
    const env = { REMORA_ENDPOINTS: '127.0.0.1:1' };
    const endpoints = `127.0.0.1:${port},${cluster.endpoints.join(',')}`;
    const { code } = await begin(['kv', 'put', 'e', 'v', '--endpoints', endpoints], { env }).ended;
    expect(code).toBe(0);
  });

  test.each(['flag', 'variable'])('an address that is none is a usage error, by %s', async (by) => {
    const args = by === 'flag' ? ['status', '--endpoints', 'nonsense'] : ['status'];
    const env: Record<string, string> = by === 'flag' ? {} : { REMORA_ENDPOINTS: 'nonsense' };
    const { code, err } = await begin(args, { env }).ended;
    expect(code).toBe(2);
    expect(err).toContain('host:port');
  });
});

describe('help', () => {
  const paths = [
    'kv',
    'kv get',
    'kv put',
    'kv delete',
    'kv watch',
    'lock',
    'lock run',
    'lock list',
    'lock show',
    'lock release',
    'lock capacity',
    'lock forget',
    'status',
    'dev',
    'node',
  ];

  test('whoever stops reading is no fault', async () => {
    const run = begin(['--help']);
    run.child.stdout?.destroy();
    expect((await run.ended).err).toBe('');
  });

  test('every command has help with examples', async () => {
    const pages = await Promise.all(paths.map((path) => remora(...path.split(' '), '--help')));
    for (const [i, { code, out }] of pages.entries()) {
      expect([paths[i], code]).toEqual([paths[i], 0]);
      expect(out, paths[i]).toMatch(/^Usage: remora /);
      expect(out, paths[i]).toContain('\nExamples:\n');
      expect(out, paths[i]).toContain(`$ remora ${paths[i]?.replace(' list', ' ls')}`);
    }
  });

  test.each([
    { args: ['lock', 'run', '', '--', 'true'], says: 'a name must have 1 to 1024 bytes' },
    { args: ['lock', 'watch', ''], says: 'a name must have 1 to 1024 bytes' },
    { args: ['election', 'observe', 'x'.repeat(1025)], says: 'the name has 1025 bytes' },
    { args: ['lock', 'capacity', 'b', '99999999999'], says: 'from 0 to 1000000' },
    { args: ['lock', 'capacity', 'b', '-1'], says: 'from 0 to 1000000' },
    { args: ['lock', 'run', '--lock-delay', '2m', 'l', '--', 'true'], says: 'at most 1m' },
    { args: ['kv', 'put', '', 'v'], says: 'a key must have at least one byte' },
    { args: ['kv', 'get', ''], says: 'a key must have at least one byte' },
    { args: ['kv', 'get', '--limit', '0', 'k'], says: 'at least 1' },
  ])(
    'what no cluster would take is exit code 2, whether there is one or not: $args.0 $args.1 ($says)',
    async ({ args, says }) => {
      const ended = await begin(args, { env: { REMORA_ENDPOINTS: '127.0.0.1:1' } }).ended;
      expect(ended).toMatchObject({ code: 2, out: '', err: expect.stringContaining(says) });
    },
  );

  test('a mistake is exit code 2, with a hint at what was meant and at the help', async () => {
    const { code, err } = await remora('kv', 'geet', 'k');
    expect([code, err]).toEqual([2, expect.stringContaining('Did you mean get?')]);
    // Also where something is done if no command is named.
    expect(await remora('admin', 'nodes', 'sow', 'n1')).toMatchObject({
      ...{ code: 2, out: '' },
      err: "error: unknown command 'sow'\n(Did you mean show?)\n(see remora admin nodes --help)\n",
    });
    const none = await remora('admin', 'settings', 'ls', 'what');
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('too many arguments') });
    const unknown = await remora('lock', 'run');
    expect(unknown).toMatchObject({ code: 2, err: expect.stringContaining('(see remora lock run --help)') });
  });
});
