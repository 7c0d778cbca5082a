import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import { CommandError } from '../../exit-codes.ts';
import { table } from '../../format/table.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples } from '../connection.ts';
import { addViewFlags, addYesFlag, confirm, print, show, type View, type ViewFlags, withAdmin } from './run.ts';

export function upgradeCommand(shell: Shell): Command {
  return new Command('upgrade')
    .summary('Shows how far an upgrade has come, and finalizes it.')
    .description(
      'Shows how far an upgrade has come, and finalizes it. Until then, every node may go back to the earlier release.',
    )
    .addHelpText('after', examples('remora admin upgrade status', 'remora admin upgrade finalize'))
    .addCommand(statusCommand(shell), { isDefault: true })
    .addCommand(finalizeCommand(shell));
}

function statusCommand(shell: Shell): Command {
  const command = new Command('status')
    .description(
      'Shows the version in force, what each node can write, and what keeps a newer version from coming into force.',
    )
    .addHelpText('after', examples('remora admin upgrade status', 'remora admin upgrade status --watch'));
  return addViewFlags(command, shell).action((flags: ViewFlags) =>
    show(flags, shell, async (client) => statusView(await client.upgradeStatus())),
  );
}

function finalizeCommand(shell: Shell): Command {
  const command = new Command('finalize')
    .description(
      'Brings the newest version into force that all nodes can write. After that, no node can go back to an earlier release.',
    )
    .addHelpText('after', examples('remora admin upgrade finalize', 'remora admin upgrade finalize --yes'));
  return addYesFlag(addConnectionFlags(command, shell)).action((flags: ConnectionFlags & { readonly yes?: true }) =>
    withAdmin(flags, async (client) => {
      const before = await client.upgradeStatus();
      const { inForce, newest, blockers } = before;
      if (newest === inForce) return print({ text: nothingNewer(before), json: before }, flags, shell);
      if (blockers.length > 0) {
        throw new CommandError('failed', `version ${newest} cannot come into force yet:\n${bulleted(blockers)}`);
      }
      await confirm(`Version ${newest} comes into force, and no node can go back to ${inForce}.`, flags.yes, shell);
      const after = await client.finalizeUpgrade(newest);
      print({ text: `version ${after.inForce} is in force`, json: after }, flags, shell);
    }),
  );
}

function statusView(status: admin.UpgradeStatus): View {
  const { inForce, newest, nodes, blockers } = status;
  const rows = nodes.map(({ id, name, build, state, canWriteFrom, canWriteTo, knows }) => [
    String(id),
    name,
    state,
    build,
    canWriteTo === '' ? '-' : canWriteFrom === canWriteTo ? canWriteTo : `${canWriteFrom} to ${canWriteTo}`,
    knows === '' ? '-' : knows,
  ]);
  const list = table(['ID', 'NODE', 'STATE', 'RELEASE', 'CAN WRITE', 'WRITES UP TO'], rows);
  const next =
    newest === inForce
      ? nothingNewer(status)
      : blockers.length > 0
        ? `Version ${newest} cannot come into force yet:\n${bulleted(blockers)}`
        : `All nodes can write version ${newest}. When none has to go back, run: remora admin upgrade finalize`;
  return { text: `Version in force: ${inForce}\n\n${list}\n\n${next}`, json: status };
}

function nothingNewer({ inForce }: admin.UpgradeStatus): string {
  return `Nothing to finalize: no node can write a newer version than ${inForce}, which is in force.`;
}

function bulleted(lines: readonly string[]): string {
  return lines.map((line) => `  - ${line}`).join('\n');
}
