import { int } from '@remora/base';
import { Command } from 'commander';
import { activeTable, historyTable } from '../../admin/operator-text.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples, flagReader } from '../connection.ts';
import { addViewFlags, print, show, type ViewFlags, withAdmin } from './run.ts';

interface ListFlags extends ViewFlags {
  readonly range?: number;
  readonly limit: number;
}

const LIMIT_MAX = 1_000;
const readId = flagReader(int({ min: 1 }));
const readLimit = flagReader(int({ min: 1, max: LIMIT_MAX }));

export function operatorsCommand(shell: Shell): Command {
  return new Command('operators')
    .description(
      'What the masters do to ranges, in steps: repairs, moves, balance, and what people asked for. One range takes part in ' +
        'one operator at a time.',
    )
    .addHelpText('after', examples('remora admin operators', 'remora admin operators history --range 2'))
    .addCommand(listCommand(shell), { isDefault: true })
    .addCommand(historyCommand(shell))
    .addCommand(cancelCommand(shell));
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .description('Lists the operators under way, oldest first, with the step that each is at and what that waits for.')
    .option('--range <range>', 'only of this one', readId)
    .option('--limit <number>', 'at most so many', readLimit, LIMIT_MAX)
    .addHelpText('after', examples('remora admin operators', 'remora admin operators ls --watch'));
  return addViewFlags(command, shell).action((flags: ListFlags) =>
    show(flags, shell, async (client) => {
      const operators = await client.operators({ ended: false, ...wanted(flags) });
      return { text: activeTable(operators), json: { operators } };
    }),
  );
}

function historyCommand(shell: Shell): Command {
  const command = new Command('history')
    .description(
      "Lists the operators that have ended, newest first, and why they ended so. The masters' leader keeps the last ones of " +
        'its own time.',
    )
    .option('--range <range>', 'only of this one', readId)
    .option('--limit <number>', 'at most so many', readLimit, 50)
    .addHelpText(
      'after',
      examples('remora admin operators history', 'remora admin operators history --range 2 --json'),
    );
  return addViewFlags(command, shell).action((flags: ListFlags) =>
    show(flags, shell, async (client) => {
      const operators = await client.operators({ ended: true, ...wanted(flags) });
      return { text: historyTable(operators), json: { operators } };
    }),
  );
}

function wanted({ range, limit }: ListFlags): { readonly rangeId: number; readonly limit: number } {
  return { rangeId: range ?? 0, limit };
}

function cancelCommand(shell: Shell): Command {
  const command = new Command('cancel')
    .description(
      'Ends an operator. What its steps have done stays, and a learner that is left behind is tidied up. What the masters ' +
        'find wrong they begin again: pause a scheduler to keep it from that.',
    )
    .argument('<operator>', 'its id', readId)
    .addHelpText('after', examples('remora admin operators cancel 3000017'));
  return addConnectionFlags(command, shell).action((id: number, flags: ConnectionFlags) =>
    withAdmin(flags, async (client) => {
      const ended = await client.cancelOperator(id);
      print({ text: `operator ${id} (${ended.reason}) is cancelled`, json: ended }, flags, shell);
    }),
  );
}
