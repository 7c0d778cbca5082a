import { Command } from 'commander';
import type { Shell } from '../../shell.ts';
import { examples } from '../connection.ts';
import { compactCommand, transferLeaderCommand } from './actions.ts';
import { backupCommand, restoreCommand } from './backup.ts';
import { checkCommand } from './check.ts';
import { nodesCommand } from './nodes.ts';
import { hotCommand, rangesCommand } from './ranges.ts';
import { settingsCommand } from './settings.ts';

const EXAMPLES = examples(
  'remora admin check',
  'remora admin nodes --watch',
  'remora admin ranges ls --key orders/42',
  'remora admin transfer-leader 2 n3',
  'remora admin settings set down-after 5m',
  'remora admin backup nightly.remora',
);

export function adminCommand(shell: Shell): Command {
  return new Command('admin')
    .description('Looks into a cluster and steers it.')
    .addHelpText('after', EXAMPLES)
    .addCommand(nodesCommand(shell))
    .addCommand(rangesCommand(shell))
    .addCommand(hotCommand(shell))
    .addCommand(checkCommand(shell))
    .addCommand(transferLeaderCommand(shell))
    .addCommand(compactCommand(shell))
    .addCommand(backupCommand(shell))
    .addCommand(restoreCommand(shell))
    .addCommand(settingsCommand(shell));
}
