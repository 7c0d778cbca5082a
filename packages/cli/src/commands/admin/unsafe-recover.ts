import { ServiceError } from '@remora/base';
import { routingKeyText } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { Command, Option } from 'commander';
import type { AdminClient } from 'remora';
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
/** The masters elect, the dead nodes are to be silent for a while, and every range elects. */
const TRIES_MAX = 120;

const WARNING = `\
Of each of these one replica goes on alone, the one that holds most; replicas are added to it afterwards. What only the
dead nodes had is lost: writes that were acknowledged, locks that were granted, sessions. Not guaranteed any more:
  - that a write, a lock or a session that was acknowledged is there; a lock that is lost may have a holder who believes in it
  - that a transaction over several ranges took effect in all of them, or in none
  - that a request that is sent again is applied once
  - that a key goes when its lease ends, if the lease was lost
Revisions and fencing versions go on far above all that were used. The history before is compacted: watches that go on
from there end with COMPACTED, and their clients read anew.
The dead nodes must never be started again: two of them that come back at once may serve what is past, until they reach one
that is left, and are refused. Wipe their data.`;

export function unsafeRecoverCommand(shell: Shell): Command {
  const command = new Command('unsafe-recover')
    .description(
      'Gets ranges, and the masters, going again that have lost their majority for good, with what is left of them: LOSES ' +
        'DATA. For disks that are gone; a node that may come back with its data is brought back instead. All other nodes ' +
        'have to run. Says first what is concerned, what is lost and what is not guaranteed any more, and asks.',
    )
    .addOption(
      new Option('--dead <node,...>', 'the nodes that are gone for good, by id or by name').makeOptionMandatory(),
    )
    .option('--dry-run', 'only say what would be done')
    .option('--yes-i-lose-data', 'do it without asking')
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
    did.length === 0 ? 'nothing was left to do' : 'done: replicas are added by themselves, see `remora admin check`';
  print({ text, json: { ...jsonPlan(plan), did } }, flags, shell);
}

/** @throws CommandError when the answer is another one, or nobody can be asked. */
async function confirmLoss({ yesILoseData }: RecoverFlags, shell: Shell): Promise<void> {
  if (yesILoseData) return;
  const answer = shell.terminal ? await shell.ask(`Type "${PHRASE}" to go on: `) : undefined;
  if (answer === undefined)
    throw new CommandError('usage', 'Data is lost by this. Add --yes-i-lose-data if you mean it.');
  if (answer.trim().toLowerCase() !== PHRASE) throw new CommandError('failed', 'nothing was changed');
}

/** Step by step; what cannot be done yet is tried again. */
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
  throw new CommandError('failed', 'not done; the same command goes on with it');
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
      `NOTHING CAN BE DONE for range ${rangeId}, from ${routingKeyText(start)} to ${routingKeyText(end)}: ${reason}.`,
  );
  const head = ['RANGE', 'START', 'END', 'VOTERS, BY NODE', 'GOES ON WITH', 'GIVEN UP'];
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
