/** The clients in Python and Go (examples/python, examples/go) with the SDK, on one cluster. */
import { connect, type RemoraClient } from 'remora';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWith } from '../../support/needs.ts';
import { eventually } from '../eventually.ts';
import { Cluster } from '../harness.ts';
import { LANGUAGES, type Language, missingLanguages, Programs } from './programs.ts';

/** A holder that renews its lock has it for longer than this; one that does not has lost it. */
const TTL_S = 5;
const LONGER_THAN_TTL = `${TTL_S + 2}s`;
const ROUNDS = 15;

describeWith(missingLanguages(), 'the clients in Python and Go', () => {
  const programs = new Programs();
  let cluster: Cluster;
  let client: RemoraClient;

  beforeAll(async () => {
    programs.build();
    cluster = await Cluster.start();
    client = await connect({ endpoints: cluster.endpoints });
  });
  afterAll(async () => {
    programs.remove();
    await client?.close();
    await cluster?.stop();
  });

  const gateways = (...numbers: readonly number[]) => numbers.map((n) => `http://${cluster.node(n).http}`);
  const run = (language: Language, ...args: readonly string[]) => programs.begin(language, gateways(1, 2), args);
  const waiters = (name: string, count: number) =>
    eventually(`${count} wait for ${name}`, async () => {
      const shown = await client.locks.show(name);
      return shown?.waiters.length === count;
    });
  const hold = (language: Language, name: string, ...options: readonly string[]) =>
    run(language, 'hold', ...options, ...seconds(language, '--ttl', TTL_S), name);

  describe('while all gateways run', () => {
    test.concurrent.each(LANGUAGES)('%s: its own tests and checks find nothing wrong', async (language) => {
      await programs.check(language);
    });

    test.concurrent.each(LANGUAGES)('%s: the program of the page works', async (language) => {
      const output = await programs.documented(language, gateways(1, 2));
      expect(output).toMatch(/^(ship item \d with fence [1-9]\d*\n){3}$/);
    });

    test.concurrent('Python, Go and the SDK exclude each other', async () => {
      const first = await client.lock('count').acquire();
      const counting = LANGUAGES.map((language) => run(language, 'count', 'count', 'number', String(ROUNDS)));
      await waiters('count', 2);
      await first.release();
      for (let i = 0; i < ROUNDS; i++) {
        await using lock = await client.lock('count').acquire({ wait: '1m' });
        const number = Number((await client.kv.get('number'))?.text() ?? 0);
        await client.kv.put('number', String(number + 1), { fence: lock });
      }
      const outputs = await Promise.all(counting.map((each) => each.done()));
      expect((await client.kv.get('number'))?.text()).toBe(String(3 * ROUNDS));
      // Each grant had its own number and version.
      const counted = outputs.flatMap((output) => [...output.matchAll(/counted (\d+) version (\d+)/g)]);
      for (const column of [1, 2]) expect(new Set(counted.map((each) => each[column])).size).toBe(2 * ROUNDS);
    });

    test.concurrent('a lock is handed over as soon as it is released', async () => {
      // Each TTL is longer than the next one waits.
      const python = run('python', 'hold', '--ttl', '60', 'hand-over');
      const [first = 0] = await python.until(/held hand-over version (\d+)/);
      const go = run('go', 'hold', '--ttl', '60s', '--wait', '40s', 'hand-over');
      await waiters('hand-over', 1);
      python.finish();
      const [second = 0] = await go.until(/held hand-over version (\d+)/);
      const acquiring = client.lock('hand-over').acquire({ wait: '40s' });
      await waiters('hand-over', 1);
      go.finish();
      const third = await acquiring;
      expect(second).toBeGreaterThan(first);
      expect(third.version).toBeGreaterThan(second);
      await third.release();
      expect([await python.done(), await go.done()].map((output) => output.includes('released'))).toEqual([true, true]);
    });

    test.concurrent.each(LANGUAGES)('%s: a lock is held for longer than its TTL', async (language) => {
      const holder = hold(language, `kept/${language}`);
      const [version = 0] = await holder.until(/held .* version (\d+)/);
      const busy = client.lock(`kept/${language}`).acquire({ wait: LONGER_THAN_TTL });
      await expect(busy).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(await run(language, 'check', `kept/${language}`, String(version)).done()).toBe('current\n');
      holder.finish();
      expect(await holder.done()).toContain('released');
    });

    test.concurrent.each(LANGUAGES)('%s: a holder that was paused knows that its lock is lost', async (language) => {
      const name = `paused/${language}`;
      const holder = hold(language, name);
      const [version = 0] = await holder.until(/held .* version (\d+)/);
      const own = { name, version };
      await client.kv.put(`${name}/data`, 'first', { fence: own });
      holder.signal('SIGSTOP');
      await using next = await client.lock(name).acquire({ wait: '1m' });
      holder.signal('SIGCONT');
      const [lost, validUntilMs = 0] = await holder.until(/lost .* version (\d+) valid-until (\d+)/);
      expect(lost).toBe(version);
      // By its own clock, it was over before the next one could begin.
      expect(validUntilMs).toBeLessThan(next.lockTimeMs);
      expect(await holder.ended).toBe(1);
      expect(await run(language, 'check', name, String(version)).done()).toBe('stale\n');
      await expect(client.kv.put(`${name}/data`, 'late', { fence: own })).rejects.toMatchObject({ code: 'FENCED' });
    });

    test.concurrent.each(LANGUAGES)('%s: a holder learns that its lock was taken by force', async (language) => {
      const holder = hold(language, `forced/${language}`);
      await holder.until(/held/);
      await client.locks.forceRelease(`forced/${language}`);
      await holder.until(/lost/);
      expect(await holder.ended).toBe(1);
      expect(holder.output).toContain('LOCK_NOT_HELD');
    });

    test.concurrent.each(LANGUAGES)('%s: a lock that others hold is not waited for by default', async (language) => {
      await using _held = await client.lock(`busy/${language}`).acquire();
      const busy = hold(language, `busy/${language}`);
      expect(await busy.ended).toBe(1);
      expect(busy.output).toContain('LOCK_BUSY');
    });

    test.concurrent.each(LANGUAGES)('%s: keys are written, compared and watched', async (language) => {
      const key = `keys/${language}/ä b&c+d%`;
      const { revision } = await client.kv.put('keys/before', '1');
      const watching = run(language, 'watch', '--since', String(revision), `keys/${language}/`);
      const put = (value: string, ifModRevision: number) =>
        run(language, 'put', '--if-mod-revision', String(ifModRevision), key, value);
      const written = await put('ö 1', 0).done();
      const first = Number(/revision (\d+)/.exec(written)?.[1]);
      expect(await run(language, 'get', key).done()).toBe(`ö 1 revision ${first}\n`);
      await put('two', first).done();
      const late = put('three', first);
      expect(await late.ended).toBe(1);
      expect(late.output).toMatch(/changed by others at revision \d+/);
      expect((await client.kv.get(key))?.text()).toBe('two');
      await client.kv.delete(key);
      await watching.until(new RegExp(`delete keys/${language}/`));
      expect(watching.output).toBe(`put ${key} ö 1\nput ${key} two\ndelete ${key} \n`);
    });
  });

  test('holders, waiters and watchers go on when their gateway is killed', async () => {
    const begin = (language: Language, ...args: readonly string[]) => programs.begin(language, gateways(3, 1), args);
    const ttl = (language: Language) => seconds(language, '--ttl', TTL_S);
    const worlds = await Promise.all(
      LANGUAGES.map(async (language) => {
        const [held, awaited] = [`failover/${language}/held`, `failover/${language}/awaited`];
        const holder = begin(language, 'hold', ...ttl(language), held);
        const mine = await client.lock(awaited).acquire();
        const waiter = begin(language, 'hold', ...ttl(language), ...seconds(language, '--wait', 60), awaited);
        const watcher = begin(language, 'watch', `failover/${language}/key`);
        const [version = 0] = await holder.until(/held .* version (\d+)/);
        await waiters(awaited, 1);
        await eventually('the watch has begun', async () => {
          await client.kv.put(`failover/${language}/key`, 'before');
          return watcher.output.includes('before');
        });
        return { language, held, holder, version, mine, waiter, watcher };
      }),
    );
    await cluster.node(3).end('SIGKILL');
    await Promise.all(
      worlds.map(async ({ language, held, holder, version, mine, waiter, watcher }) => {
        const busy = client.lock(held).acquire({ wait: LONGER_THAN_TTL });
        await expect(busy).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
        expect(await begin(language, 'check', held, String(version)).done()).toBe('current\n');
        await mine.release();
        await waiter.until(/held/);
        await client.kv.put(`failover/${language}/key`, 'after');
        await watcher.until(/after/);
        for (const each of [holder, waiter]) each.finish();
        expect(await holder.done()).toContain('released');
        expect(await waiter.done()).toContain('released');
      }),
    );
  });
});

/** Python's program takes seconds, and Go's a duration. */
function seconds(language: Language, option: string, count: number): readonly string[] {
  return [option, language === 'go' ? `${count}s` : String(count)];
}
