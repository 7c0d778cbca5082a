import { int } from '@remora/base';
import { routingKeyText } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { Command, Option } from 'commander';
import type { AdminClient } from 'remora/admin';
import { NodeNames } from '../../admin/node-names.ts';
import { rangeWith } from '../../admin/range-targets.ts';
import { CommandError } from '../../exit-codes.ts';
import { jsonBound } from '../../format/key-bound.ts';
import { addKeyFormatFlag, type KeyFlags, readKey } from '../../format/key-text.ts';
import { agoText, counted, rateText, sizeText } from '../../format/sizes.ts';
import { table } from '../../format/table.ts';
import type { Shell } from '../../shell.ts';
import { examples, flagReader } from '../connection.ts';
import { addViewFlags, show, type View, type ViewFlags } from './run.ts';

interface ListFlags extends ViewFlags, KeyFlags {
  readonly key?: string;
  readonly limit: number;
}

interface ShowFlags extends ViewFlags, KeyFlags {
  readonly key?: string;
}

interface HotFlags extends ViewFlags {
  readonly by?: string;
  readonly limit: number;
}

const PAGE = 200;
const LIST_LIMIT = 1_000;
const HOT_LIMIT = 20;
const readId = flagReader(int({ min: 1 }));
const readLimit = flagReader(int({ min: 1 }));

export function rangesCommand(shell: Shell): Command {
  return new Command('ranges')
    .description('Shows the ranges of a cluster: their keys, their leaders, and how far their replicas lag.')
    .addHelpText('after', examples('remora admin ranges', 'remora admin ranges ls --key orders/42'))
    .addCommand(listCommand(shell), { isDefault: true })
    .addCommand(showCommand(shell));
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .summary('Lists the ranges in key order.')
    .description(
      'Lists the ranges in key order. Among the replicas, * marks the leader, ~ a learner, and +N the number of ' +
        'log entries that a replica is behind.',
    )
    .option('--key <key>', 'only the range that contains this key')
    .option('--limit <number>', `maximum number of ranges`, readLimit, LIST_LIMIT)
    .addHelpText(
      'after',
      examples(
        'remora admin ranges',
        'remora admin ranges ls --key orders/42 --json',
        'remora admin ranges ls --key lock:orders/42',
      ),
    );
  return addViewFlags(addKeyFormatFlag(command), shell).action((flags: ListFlags) =>
    show(flags, shell, async (client) => {
      const names = new NodeNames((await client.nodes()).nodes);
      return rangesView(await rangesOf(client, flags), names);
    }),
  );
}

function showCommand(shell: Shell): Command {
  const command = new Command('show')
    .description('Shows the details of one range.')
    .argument('[range]', 'id of the range', readId)
    .option('--key <key>', 'the range that contains this key')
    .addHelpText('after', examples('remora admin ranges show 2 --watch', 'remora admin ranges show --key orders/42'));
  return addViewFlags(addKeyFormatFlag(command), shell).action((rangeId: number | undefined, flags: ShowFlags) =>
    show(flags, shell, async (client) => {
      const [range, { nodes }] = await Promise.all([rangeOf(client, rangeId, flags), client.nodes()]);
      return { text: rangeText(range, new NodeNames(nodes)), json: jsonRange(range) };
    }),
  );
}

/** `remora admin hot` */
export function hotCommand(shell: Shell): Command {
  const by = new Option('--by <measure>', 'load to sort by (default: read and write requests)');
  const command = new Command('hot')
    .description('Lists the ranges with the highest load, in requests or bytes per second over about ten seconds.')
    .addOption(by.choices(['reads', 'read_bytes', 'writes', 'write_bytes']))
    .option('--limit <number>', 'maximum number of ranges', readLimit, HOT_LIMIT)
    .addHelpText('after', examples('remora admin hot', 'remora admin hot --by write_bytes --limit 5 --watch'));
  return addViewFlags(command, shell).action((flags: HotFlags) =>
    show(flags, shell, async (client) => {
      const names = new NodeNames((await client.nodes()).nodes);
      const { ranges, more } = await client.hotRanges(flags.by ?? '', Math.min(flags.limit, PAGE));
      return hotView({ ranges, more }, names);
    }),
  );
}

function rangeOf(client: AdminClient, rangeId: number | undefined, flags: ShowFlags): Promise<admin.Range> {
  const { key } = flags;
  if (rangeId !== undefined && key === undefined) return client.range(rangeId);
  if (rangeId === undefined && key !== undefined) return rangeWithKey(client, key, flags);
  throw new CommandError('usage', 'give either a range id or a --key');
}

function rangeWithKey(client: AdminClient, key: string, flags: KeyFlags): Promise<admin.Range> {
  return rangeWith(client, readKey(key, flags));
}

interface Found {
  readonly ranges: readonly admin.Range[];
  readonly more: boolean;
}

async function rangesOf(client: AdminClient, flags: ListFlags): Promise<Found> {
  const { key, limit } = flags;
  if (key !== undefined) return { ranges: [await rangeWithKey(client, key, flags)], more: false };
  const ranges: admin.Range[] = [];
  for await (const range of client.ranges({ pageSize: Math.min(PAGE, limit + 1) })) {
    if (ranges.length === limit) return { ranges, more: true };
    ranges.push(range);
  }
  return { ranges, more: false };
}

function rangesView({ ranges, more }: Found, names: NodeNames): View {
  const rows = ranges.map((range) => [
    range.id,
    routingKeyText(range.start),
    routingKeyText(range.end),
    range.state?.keys ?? '?',
    sizeText(range.state?.bytes ?? bytesReported(range)),
    names.nameOf(range.leaderNode),
    range.replicas.map((replica) => replicaText(replica, range, names)).join(' '),
    `${range.confVersion}.${range.version}`,
  ]);
  const text = table(['RANGE', 'START', 'END', 'KEYS', 'BYTES', 'LEADER', 'REPLICAS', 'EPOCH'], rows);
  return { text: withMore(text, more), json: { ranges: ranges.map(jsonRange), more } };
}

function hotView({ ranges, more }: Found, names: NodeNames): View {
  const rows = ranges.map(({ id, start, leaderNode, load }) => [
    id,
    routingKeyText(start),
    names.nameOf(leaderNode),
    rateText(load?.readsPerS ?? 0),
    sizeText(load?.readBytesPerS ?? 0),
    rateText(load?.writesPerS ?? 0),
    sizeText(load?.writeBytesPerS ?? 0),
  ]);
  const text = table(['RANGE', 'START', 'LEADER', 'READS/S', 'READ/S', 'WRITES/S', 'WRITTEN/S'], rows);
  return { text: withMore(text, more), json: { ranges: ranges.map(jsonRange), more } };
}

function withMore(text: string, more: boolean): string {
  return more ? `${text}\nThere are more ranges: raise --limit to see them.` : text;
}

/** As the replicas reported it to the master, if the leader's report is missing. */
function bytesReported({ replicas }: admin.Range): number {
  return Math.max(0, ...replicas.map(({ bytes }) => bytes));
}

function replicaText(replica: admin.Replica, range: admin.Range, names: NodeNames): string {
  const mark = replica.nodeId === range.leaderNode ? '*' : replica.type === 'learner' ? '~' : '';
  const behind = replica.logBehind > 0 ? `+${replica.logBehind}` : '';
  return `${names.nameOf(replica.nodeId)}${mark}${behind}`;
}

function rangeText(range: admin.Range, names: NodeNames): string {
  const { state, load } = range;
  const rows: (string | number)[][] = [
    ['keys', `${routingKeyText(range.start)} to ${routingKeyText(range.end)}`],
    ['leader', names.nameOf(range.leaderNode)],
    ['epoch', `${range.confVersion}.${range.version} (membership, bounds)`],
    ['numbered by', range.revisionSource === 'range' ? 'itself' : 'the master'],
  ];
  if (state !== undefined) {
    rows.push(
      ['revision', `${state.revision}, history from ${state.compactRevision}`],
      ['log', `term ${state.term}, commit ${state.commit}, applied ${state.applied}`],
      ['data', heldText(state)],
    );
  }
  if (load !== undefined) {
    rows.push(
      ['reads', `${rateText(load.readsPerS)}/s, ${sizeText(load.readBytesPerS)}/s`],
      ['writes', `${rateText(load.writesPerS)}/s, ${sizeText(load.writeBytesPerS)}/s`],
    );
  }
  const replicas = range.replicas.map((replica) => [
    replica.id,
    names.nameOf(replica.nodeId),
    replica.type,
    replica.state,
    ...[replica.logBehind, replica.commitBehind].map((behind) => (behind < 0 ? '?' : behind)),
    sizeText(replica.bytes),
    agoText(replica.silentMs),
  ]);
  const head = ['REPLICA', 'NODE', 'TYPE', 'STATE', 'LOG BEHIND', 'COMMIT BEHIND', 'BYTES', 'HEARD'];
  return `${table(['RANGE', String(range.id)], rows)}\n\n${table(head, replicas)}`;
}

function heldText({ keys, bytes, leases, watches }: NonNullable<admin.Range['state']>): string {
  const held = [counted(keys, 'key'), sizeText(bytes), counted(leases, 'lease'), counted(watches, 'watch', 'watches')];
  return held.join(', ');
}

/** The form that scripts rely on (docs/how-to/cluster/use-admin-commands.md). */
function jsonRange({ start, end, ...range }: admin.Range): unknown {
  return {
    ...range,
    start: jsonBound(start),
    end: jsonBound(end),
    state: range.state ?? null,
    load: range.load ?? null,
  };
}
