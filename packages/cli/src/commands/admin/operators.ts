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
    .summary('Shows operators: changes that the masters make to ranges.')
    .description(
      'Shows operators: changes that the masters make to ranges, step by step (repairs, moves, balancing, and requests by ' +
        'administrators). A range is part of at most one operator at a time.',
    )
    .addHelpText('after', examples('remora admin operators', 'remora admin operators history --range 2'))
    .addCommand(listCommand(shell), { isDefault: true })
    .addCommand(historyCommand(shell))
    .addCommand(cancelCommand(shell));
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .summary('Lists the running operators.')
    .description('Lists the running operators, oldest first, with the current step of each and what it waits for.')
    .option('--range <range>', 'only operators of this range', readId)
    .option('--limit <number>', 'maximum number of operators', readLimit, LIMIT_MAX)
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
    .summary('Lists the operators that have ended.')
    .description(
      "Lists the operators that have ended, newest first, and how they ended. The masters' leader keeps only the most " +
        'recent ones since its election.',
    )
    .option('--range <range>', 'only operators of this range', readId)
    .option('--limit <number>', 'maximum number of operators', readLimit, 50)
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
    .summary('Cancels an operator.')
    .description(
      'Cancels an operator. Completed steps are not undone; a learner left behind is removed later. If the masters still see ' +
        'the problem, they start a new operator: pause the scheduler to prevent that.',
    )
    .argument('<operator>', 'id of the operator', readId)
    .addHelpText('after', examples('remora admin operators cancel 3000017'));
  return addConnectionFlags(command, shell).action((id: number, flags: ConnectionFlags) =>
    withAdmin(flags, async (client) => {
      const ended = await client.cancelOperator(id);
      print({ text: `cancelled operator ${id} (${ended.reason})`, json: ended }, flags, shell);
    }),
  );
}
