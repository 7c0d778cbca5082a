import { Command } from 'commander';
import type { Shell } from '../../shell.ts';
import { examples } from '../connection.ts';
import { compactCommand, logLevelCommand, transferLeaderCommand } from './actions.ts';
import { backupCommand } from './backup.ts';
import { checkCommand } from './check.ts';
import { importEtcdCommand } from './import-etcd.ts';
import { nodesCommand } from './nodes.ts';
import { operatorsCommand } from './operators.ts';
import { addReplicaCommand, mergeCommand, moveCommand, removeReplicaCommand, splitCommand } from './range-changes.ts';
import { hotCommand, rangesCommand } from './ranges.ts';
import { restoreCommand } from './restore.ts';
import { schedulersCommand } from './schedulers.ts';
import { settingsCommand } from './settings.ts';
import { rebalanceCommand, scatterCommand } from './spread.ts';
import { unsafeRecoverCommand } from './unsafe-recover.ts';
import { upgradeCommand } from './upgrade.ts';
import { whyCommand } from './why.ts';

const EXAMPLES = examples(
  'remora admin check',
  'remora admin nodes --watch',
  'remora admin ranges ls --key orders/42',
  'remora admin why n3',
  'remora admin move 2 n1 n4',
  'remora admin nodes maintenance n2 --for 30m',
  'remora admin operators ls --watch',
  'remora admin settings set down-after 5m',
  'remora admin backup nightly.remora',
);

export function adminCommand(shell: Shell): Command {
  return new Command('admin')
    .description('Inspects and manages a cluster.')
    .addHelpText('after', EXAMPLES)
    .addCommand(nodesCommand(shell))
    .addCommand(rangesCommand(shell))
    .addCommand(hotCommand(shell))
    .addCommand(checkCommand(shell))
    .addCommand(whyCommand(shell))
    .addCommand(operatorsCommand(shell))
    .addCommand(schedulersCommand(shell))
    .addCommand(logLevelCommand(shell))
    .addCommand(transferLeaderCommand(shell))
    .addCommand(moveCommand(shell))
    .addCommand(addReplicaCommand(shell))
    .addCommand(removeReplicaCommand(shell))
    .addCommand(splitCommand(shell))
    .addCommand(mergeCommand(shell))
    .addCommand(scatterCommand(shell))
    .addCommand(rebalanceCommand(shell))
    .addCommand(compactCommand(shell))
    .addCommand(backupCommand(shell))
    .addCommand(restoreCommand(shell))
    .addCommand(importEtcdCommand(shell))
    .addCommand(settingsCommand(shell))
    .addCommand(upgradeCommand(shell))
    .addCommand(unsafeRecoverCommand(shell));
}
