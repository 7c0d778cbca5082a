/** What becomes of a cluster whose node dies for good: a further one takes its place, without anybody's doing. */
import { connect } from 'remora';
import { expect, test } from 'vitest';
import { jsonHere, runHere } from './command-line.ts';
import { eventually } from './eventually.ts';
import { withCluster } from './harness.ts';

/** The shortest silence that a setting lets count as death, above that of suspicion. */
const SUSPECT_AFTER = '1s';
const DOWN_AFTER = '3s';
/** The down time and a minute. */
const REPAIRED_WITHIN_MS = 63_000;

interface RangesJson {
  readonly ranges: readonly { readonly replicas: readonly { readonly nodeId: number; readonly type: string }[] }[];
}

test('a node dies for good: the range has three replicas again, with all its data; coming back, it holds none', {
  timeout: 300_000,
}, async () => {
  await withCluster({}, async (cluster) => {
    const fourth = await cluster.addJoining({ roles: 'data' });
    fourth.start();
    const endpoints = cluster.endpoints.slice(0, 3);
    const places = async (): Promise<string> => {
      const { ranges } = (await jsonHere(endpoints, ['admin', 'ranges'])) as RangesJson;
      const texts = ranges[0]?.replicas.map(({ nodeId, type }) => `${type} on ${nodeId}`) ?? [];
      return texts.sort().join(', ');
    };
    for (const [name, value] of [
      ['suspect-after', SUSPECT_AFTER],
      ['down-after', DOWN_AFTER],
    ] as const) {
      expect(await runHere(endpoints, ['admin', 'settings', 'set', name, value])).toMatchObject({ code: 0 });
    }
    await using client = await connect({ endpoints, requestTimeout: '20s' });
    for (let i = 0; i < 50; i++) await client.kv.put(`before/${i}`, 'x'.repeat(1_000));

    const dies = (await cluster.leader()) === 3 ? 2 : 3;
    await cluster.node(dies).end('SIGKILL');
    const left = [1, 2, 3].filter((n) => n !== dies);
    const expected = [...left, 1_001]
      .map((n) => `voter on ${n}`)
      .sort()
      .join(', ');
    let written = 0;
    await eventually(
      'the range is whole, and served all the time',
      async () => {
        await client.kv.put(`during/${written++}`, 'y');
        return (await places()) === expected;
      },
      { timeoutMs: REPAIRED_WITHIN_MS },
    );

    // It holds everything: with another one away, the range lives by it.
    const [away = 1] = left;
    await cluster.node(away).end('SIGKILL');
    expect((await client.kv.range({ prefix: 'before/' })).count).toBe(50);
    expect((await client.kv.range({ prefix: 'during/' })).count).toBe(written);
    await cluster.restart(away);
    await cluster.restart(dies);
    await eventually('nothing is wrong', async () => (await runHere(endpoints, ['admin', 'check'])).code === 0, {
      timeoutMs: 30_000,
    });
    expect(await places()).toBe(expected);
  });
});
