import { int } from '@remora/base';
import { routingKeyText } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import type { AdminClient, RangeChangeRequest } from 'remora';
import { awaitOperator } from '../../admin/await-operator.ts';
import { NodeNames } from '../../admin/node-names.ts';
import { neighbours, splitTarget } from '../../admin/range-targets.ts';
import { addKeyFormatFlag, type KeyFlags, readKey } from '../../format/key-text.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, examples, flagReader } from '../connection.ts';
import { addYesFlag, confirm, print, withAdmin } from './run.ts';
import { addWaitFlag, lookingOn, type WaitFlags } from './wait.ts';

const readId = flagReader(int({ min: 1 }));

interface SplitFlags extends WaitFlags, KeyFlags {
  readonly key?: string;
}

export function splitCommand(shell: Shell): Command {
  const command = new Command('split')
    .description(
      'Splits a range in two, in the middle or at a key, which becomes the first one of the new range. No data moves, and ' +
        'clients go on. Ranges split by themselves when they grow, unless the setting auto-split is false; by hand it is for load ' +
        'that is to come.',
    )
    .argument('[range]', 'its id; the one that has the key unless given', readId)
    .option('--key <key>', 'where; in the middle unless given')
    .addHelpText(
      'after',
      examples('remora admin split 2', 'remora admin split --key orders/5000', 'remora admin split --key lock:orders/'),
    );
  const flagged = addConnectionFlags(addWaitFlag(addKeyFormatFlag(command)), shell);
  return flagged.action((rangeId: number | undefined, flags: SplitFlags) => {
    const key = flags.key === undefined ? undefined : readKey(flags.key, flags);
    return withAdmin(flags, async (client) => {
      const range = await splitTarget(client, rangeId, key);
      const change = { $case: 'split', value: { at: key ?? Buffer.of() } } as const;
      await carryOut(
        client,
        { range, change, done: `range ${range.id} is split${key === undefined ? '' : ` at ${routingKeyText(key)}`}` },
        flags,
        shell,
      );
    });
  });
}

export function mergeCommand(shell: Shell): Command {
  const command = new Command('merge')
    .description(
      'Makes one range of two neighbours: the one with the smaller keys goes on with the keys of both, the other one ends. ' +
        'Both have to be on the same nodes, all of which are up; `move` brings them there. Neighbours that have become ' +
        'small and quiet are merged by themselves, unless the setting auto-merge is false.',
    )
    .argument('<range>', 'one of them, by its id', readId)
    .argument('<neighbour>', 'the other one', readId)
    .addHelpText('after', examples('remora admin merge 2 9'));
  return addConnectionFlags(addWaitFlag(command), shell).action((one: number, other: number, flags: WaitFlags) =>
    withAdmin(flags, async (client) => {
      const { target, source } = await neighbours(client, one, other);
      const change = { $case: 'merge', value: { source: BigInt(source.id) } } as const;
      const done = `range ${target.id} has the keys of range ${source.id} too`;
      await carryOut(client, { range: target, change, done }, flags, shell);
    }),
  );
}

export function moveCommand(shell: Shell): Command {
  const command = new Command('move')
    .description(
      'Moves a replica of a range from node to node. The new one is there, and has caught up, before the old one goes; a ' +
        'leader hands over first.',
    )
    .argument('<range>', 'its id', readId)
    .argument('<from>', 'id or name of the node that has it')
    .argument('<to>', 'id or name of the node that is to have it')
    .addHelpText('after', examples('remora admin move 2 n1 n4', 'remora admin move 2 n1 n4 --no-wait --json'));
  return addConnectionFlags(addWaitFlag(command), shell).action(
    (rangeId: number, fromNode: string, toNode: string, flags: WaitFlags) =>
      withAdmin(flags, async (client) => {
        const [range, names] = await rangeAndNodes(client, rangeId);
        const [from, to] = [names.find(fromNode), names.find(toNode)];
        const change = { $case: 'move', value: { fromNode: BigInt(from.id), toNode: BigInt(to.id) } } as const;
        const done = `${to.name} has a replica of range ${rangeId} now, and ${from.name} has none`;
        await carryOut(client, { range, change, done }, flags, shell);
      }),
  );
}

export function addReplicaCommand(shell: Shell): Command {
  const command = new Command('add-replica')
    .description(
      'Gives a range that has too few replicas one more, on a node of your choice. Without being told, the masters do so on ' +
        'a node of theirs, once the old one was silent for long enough.',
    )
    .argument('<range>', 'its id', readId)
    .argument('<node>', 'id or name of the node that is to have it')
    .addHelpText('after', examples('remora admin add-replica 2 n4'));
  return addConnectionFlags(addWaitFlag(command), shell).action((rangeId: number, wanted: string, flags: WaitFlags) =>
    withAdmin(flags, async (client) => {
      const [range, names] = await rangeAndNodes(client, rangeId);
      const node = names.find(wanted);
      const change = { $case: 'addReplica', value: { node: BigInt(node.id) } } as const;
      await carryOut(client, { range, change, done: `${node.name} has a replica of range ${rangeId}` }, flags, shell);
    }),
  );
}

interface RemoveFlags extends WaitFlags {
  readonly yes?: true;
}

export function removeReplicaCommand(shell: Shell): Command {
  const command = new Command('remove-replica')
    .description(
      'Takes one replica of a range away. If too few are left, the masters make a new one where they see fit: to have it on ' +
        'a certain node, use `move`.',
    )
    .argument('<range>', 'its id', readId)
    .argument('<node>', 'id or name of the node that has it')
    .addHelpText('after', examples('remora admin remove-replica 2 n1', 'remora admin remove-replica 2 n1 --yes'));
  return addConnectionFlags(addWaitFlag(addYesFlag(command)), shell).action(
    (rangeId: number, wanted: string, flags: RemoveFlags) =>
      withAdmin(flags, async (client) => {
        const [range, names] = await rangeAndNodes(client, rangeId);
        const node = names.find(wanted);
        await confirm(`The replica of range ${rangeId} on ${node.name} is deleted.`, flags.yes, shell);
        const change = { $case: 'removeReplica', value: { node: BigInt(node.id) } } as const;
        const done = `${node.name} has no replica of range ${rangeId} any more`;
        await carryOut(client, { range, change, done }, flags, shell);
      }),
  );
}

interface Wish {
  readonly range: admin.Range;
  readonly change: RangeChangeRequest;
  /** What is true when it is done. */
  readonly done: string;
}

/** Begins it, and follows it to its end unless told otherwise. */
async function carryOut(client: AdminClient, wish: Wish, flags: WaitFlags, shell: Shell): Promise<void> {
  const begun = await client.changeRange(wish.range, wish.change);
  if (!flags.wait) return print({ text: `operator ${begun.id} is under way`, json: begun }, flags, shell);
  const ended = await lookingOn(shell, (follower) => awaitOperator(client, begun, follower));
  if (ended !== undefined) print({ text: wish.done, json: ended }, flags, shell);
}

async function rangeAndNodes(client: AdminClient, rangeId: number): Promise<readonly [admin.Range, NodeNames]> {
  const [range, { nodes }] = await Promise.all([client.range(rangeId), client.nodes()]);
  return [range, new NodeNames(nodes)];
}
