import { ServiceError } from '@remora/base';
import { routingKeyText } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { Command, Option } from 'commander';
import type { AdminClient } from 'remora/admin';
import { CommandError } from '../../exit-codes.ts';
import { jsonBound } from '../../format/key-bound.ts';
import { table } from '../../format/table.ts';
import { type Shell, stopSignal } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples } from '../connection.ts';
import { pauseOrStop, print, type View, withAdmin } from './run.ts';

interface RecoverFlags extends ConnectionFlags {
  readonly dead: string;
  readonly dryRun?: true;
  readonly yesILoseData?: true;
}

const PHRASE = 'lose data';
const PAUSE_MS = 1_000;
/** Enough for the masters' election, the silence of the dead nodes, and an election in every range. */
const TRIES_MAX = 120;

const WARNING = `\
In each of these groups, the replica with the longest log continues alone; replicas are added to it afterwards. Data that
only the dead nodes had is lost: acknowledged writes, granted locks, sessions. These guarantees no longer hold:
  - that an acknowledged write, lock or session still exists; the holder of a lost lock may still believe that it holds it
  - that a transaction over several ranges took effect in all of them, or in none
  - that a request that is sent again is applied only once
  - that a key is deleted when its lease ends, if the lease was lost
Revisions and fencing versions continue far above all that were used. Older history is compacted: watches that resume
from it end with COMPACTED, and their clients must read again.
Never start the dead nodes again: two of them that come back together may serve stale data until they reach a surviving
node, which refuses them. Wipe their data.`;

export function unsafeRecoverCommand(shell: Shell): Command {
  const command = new Command('unsafe-recover')
    .summary('Recovers from a permanently lost majority: LOSES DATA.')
    .description(
      'Recovers ranges, and the masters, that have permanently lost their majority, from the replicas that are left: LOSES ' +
        'DATA. Use it only if disks are gone; if a node can come back with its data, bring it back instead. All other nodes ' +
        'must be running. Shows what is affected, what is lost and which guarantees no longer hold, then asks for confirmation.',
    )
    .addOption(
      new Option('--dead <node,...>', 'ids or names of the nodes that are permanently lost').makeOptionMandatory(),
    )
    .option('--dry-run', 'show what would be done, change nothing')
    .option('--yes-i-lose-data', 'do not ask for confirmation')
    .addHelpText(
      'after',
      examples(
        'remora admin unsafe-recover --dead n2,n3 --dry-run --endpoints 10.0.0.1:7480',
        'remora admin unsafe-recover --dead n2,n3 --endpoints 10.0.0.1:7480',
      ),
    );
  return addConnectionFlags(command, shell).action((flags: RecoverFlags) =>
    withAdmin(flags, (client) => recover(client, flags, shell)),
  );
}

async function recover(client: AdminClient, flags: RecoverFlags, shell: Shell): Promise<void> {
  const dead = flags.dead.split(',').map((name) => name.trim());
  const plan = await client.recoverMajority({ dead, dryRun: true, begun: false });
  if (flags.dryRun) return print(planView(plan), flags, shell);
  if (!flags.json) shell.out(planView(plan).text);
  await confirmLoss(flags, shell);
  const did = await untilDone(client, dead, shell);
  const text =
    did.length === 0 ? 'nothing to recover' : 'done: replicas are now added automatically; see `remora admin check`';
  print({ text, json: { ...jsonPlan(plan), did } }, flags, shell);
}

/** @throws CommandError if the answer is another one, or if there is no one to ask. */
async function confirmLoss({ yesILoseData }: RecoverFlags, shell: Shell): Promise<void> {
  if (yesILoseData) return;
  const answer = shell.terminal ? await shell.ask(`Type "${PHRASE}" to continue: `) : undefined;
  if (answer === undefined) throw new CommandError('usage', 'This loses data. Add --yes-i-lose-data to confirm.');
  if (answer.trim().toLowerCase() !== PHRASE) throw new CommandError('failed', 'not confirmed; nothing was changed');
}

/** Step by step; a step that cannot be done yet is retried. */
async function untilDone(client: AdminClient, dead: string[], shell: Shell): Promise<readonly string[]> {
  const all: string[] = [];
  const stop = stopSignal();
  try {
    for (let tries = 1; !stop.signal.aborted; tries++) {
      const step = await client.recoverMajority({ dead, dryRun: false, begun: true }).catch((error: unknown) => {
        if (!isPassing(error) || tries >= TRIES_MAX) throw error;
        shell.err(`remora: ${error.message}`);
        return undefined;
      });
      for (const line of step?.did ?? []) shell.err(line);
      all.push(...(step?.did ?? []));
      if (step?.done) return all;
      await pauseOrStop(PAUSE_MS, stop.signal);
    }
  } finally {
    stop.dispose();
  }
  throw new CommandError('failed', 'recovery is not finished; run the same command again to resume it');
}

function isPassing(error: unknown): error is ServiceError {
  const passing = ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'UNKNOWN_OUTCOME'];
  return error instanceof ServiceError && error.details?.unreached !== true && passing.includes(error.code);
}

function planView(plan: admin.RecoverMajorityResponse): View {
  const dead = new Set(plan.dead);
  const nodes = (ids: readonly bigint[]): string =>
    ids.length === 0 ? '-' : ids.map((id) => (dead.has(id) ? `${id} (dead)` : String(id))).join(', ');
  const rows = plan.lost.map((lost) => [
    lost.rangeId === 0 ? 'masters' : String(lost.rangeId),
    ...(lost.rangeId === 0 ? ['', ''] : [routingKeyText(lost.start), routingKeyText(lost.end)]),
    nodes(lost.voters),
    `node ${lost.survivor}, entry ${lost.lastIndex} of term ${lost.lastTerm}`,
    nodes(lost.givenUp),
  ]);
  const gone = plan.unrecoverable.map(
    ({ rangeId, start, end, reason }) =>
      `CANNOT RECOVER range ${rangeId}, ${routingKeyText(start)} to ${routingKeyText(end)}: ${reason}.`,
  );
  const head = ['RANGE', 'START', 'END', 'VOTERS, BY NODE', 'SURVIVOR', 'ABANDONED'];
  return { text: [table(head, rows), ...gone, '', WARNING].join('\n'), json: jsonPlan(plan) };
}

function jsonPlan({ lost, unrecoverable, dead }: admin.RecoverMajorityResponse): object {
  const bounds = ({ start, end }: { readonly start: Buffer; readonly end: Buffer }): object => ({
    start: jsonBound(start),
    end: jsonBound(end),
  });
  return {
    dead: dead.map(Number),
    lost: lost.map(({ voters, givenUp, start, end, ...rest }) => ({
      ...rest,
      ...bounds({ start, end }),
      voters: voters.map(Number),
      givenUp: givenUp.map(Number),
    })),
    unrecoverable: unrecoverable.map(({ start, end, ...rest }) => ({ ...rest, ...bounds({ start, end }) })),
  };
}
