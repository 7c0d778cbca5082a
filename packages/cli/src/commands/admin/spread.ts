import type { Span } from '@remora/base';
import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import { CommandError } from '../../exit-codes.ts';
import { addKeyFormatFlag, type KeyFlags, readBound, readPrefix } from '../../format/key-text.ts';
import { counted } from '../../format/sizes.ts';
import { table } from '../../format/table.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples } from '../connection.ts';
import { print, withAdmin } from './run.ts';

interface ScatterFlags extends ConnectionFlags, KeyFlags {
  readonly prefix?: string;
  readonly from?: string;
  readonly to?: string;
  readonly all?: true;
}

export function scatterCommand(shell: Shell): Command {
  const command = new Command('scatter')
    .summary('Spreads ranges evenly over the nodes.')
    .description(
      'Spreads the replicas and leaders of the given ranges evenly over the nodes, as one group, because such ranges are ' +
        'often used together. Runs in the background; replicas that cannot be moved within ten minutes stay where they are.',
    )
    .option('--prefix <prefix>', 'ranges that contain keys with this prefix')
    .option('--from <key>', 'ranges that contain keys at or after this key')
    .option('--to <key>', 'ranges that contain keys before this key')
    .option('--all', 'all ranges')
    .addHelpText(
      'after',
      examples(
        'remora admin scatter --prefix orders/',
        'remora admin scatter --from a --to n',
        'remora admin scatter --prefix lock:orders/',
      ),
    );
  return addConnectionFlags(addKeyFormatFlag(command), shell).action((flags: ScatterFlags) => {
    const span = spanOf(flags);
    return withAdmin(flags, async (client) => {
      const { ranges } = await client.scatter(span);
      const text = `spreading ${counted(ranges, 'range')}; to follow it: remora admin operators ls --watch`;
      print({ text, json: { ranges } }, flags, shell);
    });
  });
}

/** As routing keys. @throws CommandError `usage` if the span is missing, or given in two ways. */
export function spanOf(flags: KeyFlags & Pick<ScatterFlags, 'prefix' | 'from' | 'to' | 'all'>): Span {
  const { prefix, from, to, all } = flags;
  const ways = [prefix, from ?? to, all].filter((way) => way !== undefined);
  if (ways.length !== 1) {
    throw new CommandError('usage', 'select the ranges in exactly one way: --prefix, --from and --to, or --all');
  }
  if (all) return { start: new Uint8Array(0), end: new Uint8Array(0) };
  if (prefix !== undefined) return readPrefix(prefix, flags);
  const span = { start: readBound(from, flags), end: readBound(to, flags) };
  if (span.end.length > 0 && Buffer.compare(span.start, span.end) >= 0) {
    throw new CommandError('usage', '--to must be greater than --from');
  }
  return span;
}

interface RebalanceFlags extends ConnectionFlags {
  readonly dryRun?: true;
}

export function rebalanceCommand(shell: Shell): Command {
  const command = new Command('rebalance')
    .summary('Runs all schedulers now.')
    .description(
      'Runs all schedulers now, rather than within the next second, and shows the operators that they started. ' +
        'With --dry-run, shows what they would start and what each scheduler reports, and starts nothing.',
    )
    .option('--dry-run', 'show the plan only')
    .addHelpText('after', examples('remora admin rebalance --dry-run', 'remora admin rebalance --json'));
  return addConnectionFlags(command, shell).action((flags: RebalanceFlags) =>
    withAdmin(flags, async (client) => {
      const dryRun = flags.dryRun ?? false;
      const answer = await client.rebalance({ dryRun });
      print({ text: rebalanceText(answer, dryRun), json: { dryRun, ...answer } }, flags, shell);
    }),
  );
}

export function rebalanceText({ changes, schedulers }: admin.RebalanceResponse, dryRun: boolean): string {
  const words = table(
    ['SCHEDULER', 'SAYS'],
    schedulers.map(({ name, last }) => [name, last]),
  );
  if (changes.length === 0) return `nothing to do\n\n${words}`;
  const rows = changes.map(({ rangeId, kind, reason, steps }) => [rangeId, kind, steps.join(', then '), reason]);
  const title = `${dryRun ? 'would start' : 'started'}: ${counted(changes.length, 'change')}`;
  return `${title}\n\n${table(['RANGE', 'KIND', 'STEPS', 'WHY'], rows)}\n\n${words}`;
}
