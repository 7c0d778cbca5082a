/** What clients put into a cluster reaches the terminals of others by every view of the command line. */
import { connect, type RemoraClient } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Run } from './command.ts';
import { runHere } from './command-line.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

/** Clears a screen twice, turns text around, hides, and begins a line that looks like one of the command's own. */
const HOSTILE = '\u001b[2J\u009b2J\u202e\u2066\u200b\ufeff\u007f\u2028\r\nFORGED';
const PREFIX = `p${HOSTILE}`;
/** `\p{Cs}`: halves of pairs. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

let cluster: Cluster;
let client: RemoraClient;
let session: string;

beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 1 });
  const attributes = { [`k${HOSTILE}`]: `v${HOSTILE}`, host: HOSTILE };
  client = await connect({ endpoints: cluster.endpoints, attributes });
  await client.kv.put(`${PREFIX}key`, `value${HOSTILE}`);
  await client.kv.put(Buffer.from('p\xff\u001b', 'latin1'), Buffer.from('\xff\u001b\n', 'latin1'));
  await client.lock(`${PREFIX}lock`).acquire({ data: `data${HOSTILE}`, token: `token${HOSTILE}`, keepData: true });
  void client
    .rwLock(`${PREFIX}lock`)
    .read({ token: `waits${HOSTILE}` })
    .catch(() => undefined);
  await client.semaphore(`${PREFIX}permits`, { permits: 3 }).acquire({ data: HOSTILE });
  await client.lock(`${PREFIX}forced`).acquire({ data: HOSTILE, keepData: true });
  await client.locks.forceRelease(`${PREFIX}forced`, { by: `by${HOSTILE}`, reason: `reason${HOSTILE}` });
  const shown = await eventually('the lock is held', () => client.locks.show(`${PREFIX}lock`));
  session = shown.holders[0]?.owner.session.lease.toString(16) ?? '';
});
afterAll(async () => {
  await client?.close();
  await cluster?.stop();
});

const VIEWS: readonly (() => readonly string[])[] = [
  () => ['kv', 'get', `${PREFIX}key`, '--keys-only'],
  () => ['kv', 'get', `${PREFIX}absent`],
  () => ['kv', 'get', '--prefix', 'p'],
  () => ['kv', 'get', '--prefix', 'p', '--keys-only'],
  () => ['lock', 'list'],
  () => ['lock', 'list', '--namespace', `n${HOSTILE}`],
  () => ['lock', 'show', `${PREFIX}lock`],
  () => ['lock', 'show', `${PREFIX}permits`],
  () => ['lock', 'show', `${PREFIX}forced`],
  () => ['lock', 'show', `${PREFIX}absent`],
  () => ['lock', 'check', `${PREFIX}lock`, '1'],
  () => ['lock', 'run', '--wait', '0', `${PREFIX}lock`, '--', 'true'],
  () => ['lock', 'capacity', `${PREFIX}permits`, '4'],
  () => ['lock', 'forget', `${PREFIX}absent`],
  () => ['lock', 'revoke', `${PREFIX}lock`, '--wait', '0', '--reason', HOSTILE],
  () => ['election', 'observe', `${PREFIX}lock`, '--once'],
  () => ['session', 'list'],
  () => ['session', 'show', session],
  () => ['status'],
  () => ['admin', 'ranges', 'list'],
  () => ['admin', 'ranges', 'show', '--key', `${PREFIX}key`],
  () => ['admin', 'settings', 'get', HOSTILE],
  () => ['admin', 'nodes', 'show', HOSTILE],
  () => ['admin', 'check'],
  () => ['status', '--endpoints', HOSTILE],
  () => ['status', '--endpoints', `https://${HOSTILE}:1`],
];

/** Whether a terminal shows it as it is, and the names begin no line of it. */
function expectHarmless(text: string, what: string): void {
  expect([what, text.replaceAll('\n', '').match(HIDDEN)?.[0]]).toEqual([what, undefined]);
  expect([what, text.match(/^\s*FORGED/m)?.[0]]).toEqual([what, undefined]);
}

test.each(VIEWS.map((view, i) => ({ i, name: view().slice(0, 2).join(' ').slice(0, 16), view })))(
  'view $i has nothing that a terminal acts upon',
  async ({ view }) => {
    const args = view();
    const plain = await runHere(cluster.endpoints, args, { shown: true });
    for (const text of [plain.out, plain.err])
      expectHarmless(Buffer.from(text, 'latin1').length > 0 ? text : '', args.join(' '));
    if (args.includes('--') || args.length < 2) return;
    const json = await runHere(cluster.endpoints, [...args, '--json'], { shown: true });
    for (const text of [json.out, json.err]) expectHarmless(text, `${args.join(' ')} --json`);
    if (json.code === 0 && json.out !== '') JSON.parse(json.out);
  },
);

test.each([
  { args: ['kv', 'watch', '--prefix', 'p', '--revision', '1'] },
  { args: ['lock', 'watch', '--prefix', 'p'] },
  { args: ['election', 'observe', `${PREFIX}lock`] },
])('$args.0 $args.1 tells nothing that a terminal acts upon, and a pipe gets the same', async ({ args }) => {
  for (const flags of [[], ['--json']]) {
    const run = new Run(cluster.endpoints, [...args, ...flags], {});
    await eventually('it tells something', async () => run.out.includes('FORGED'));
    run.child.kill('SIGTERM');
    await run.ended;
    expectHarmless(Buffer.from(run.out, 'latin1').toString(), args.join(' '));
  }
});

test('a terminal gets the lines of a value, escaped, and a pipe its very bytes, as scripts need', async () => {
  const shown = await runHere(cluster.endpoints, ['kv', 'get', `${PREFIX}key`], { shown: true });
  expect([shown.out.replaceAll('\n', '').match(HIDDEN), shown.out.endsWith('\nFORGED\n')]).toEqual([null, true]);
  const { out } = await runHere(cluster.endpoints, ['kv', 'get', `${PREFIX}key`]);
  expect(Buffer.from(out, 'latin1').toString()).toBe(`value${HOSTILE}`);
});
