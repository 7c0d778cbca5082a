import { Command } from 'commander';
import type { AdminClient } from 'remora/admin';
import { NodeNames } from '../../admin/node-names.ts';
import type { Shell } from '../../shell.ts';
import { examples } from '../connection.ts';
import { addViewFlags, show, type ViewFlags } from './run.ts';

export function whyCommand(shell: Shell): Command {
  const command = new Command('why')
    .summary('Explains the state of a range or a node.')
    .description(
      'Explains the state of a range or a node: what is wrong with it, what prevents a repair ' +
        'or a move, what was tried, and what each scheduler reports about it.',
    )
    .argument('<range|node>', 'the id of a range, the name of a node, or node:ID')
    .addHelpText('after', examples('remora admin why 2', 'remora admin why n3', 'remora admin why node:3 --watch'));
  return addViewFlags(command, shell).action((what: string, flags: ViewFlags) =>
    show(flags, shell, async (client) => {
      const of = await wanted(client, what);
      const lines = await client.why(of);
      return { text: lines.join('\n'), json: { ...of, lines } };
    }),
  );
}

/** A number is a range, unless a flag says that it is a node. */
async function wanted(
  client: AdminClient,
  what: string,
): Promise<{ readonly rangeId: number } | { readonly nodeId: number }> {
  if (/^[1-9][0-9]{0,14}$/.test(what)) return { rangeId: Number(what) };
  const names = new NodeNames((await client.nodes()).nodes);
  return { nodeId: names.find(what.replace(/^node:/, '')).id };
}
