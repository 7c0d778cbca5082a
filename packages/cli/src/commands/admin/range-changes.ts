import { int } from '@remora/base';
import { routingKeyText } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import type { AdminClient, RangeChangeRequest } from 'remora/admin';
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
    .summary('Splits a range in two.')
    .description(
      'Splits a range in two, in the middle or at a key, which becomes the first key of the new range. No data moves, and ' +
        'clients are not interrupted. Ranges that grow are split automatically unless the setting auto-split is false; split ' +
        'manually to prepare for load.',
    )
    .argument('[range]', 'id of the range (default: the range that contains --key)', readId)
    .option('--key <key>', 'the first key of the new range (default: a key in the middle)')
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
        { range, change, done: `split range ${range.id}${key === undefined ? '' : ` at ${routingKeyText(key)}`}` },
        flags,
        shell,
      );
    });
  });
}

export function mergeCommand(shell: Shell): Command {
  const command = new Command('merge')
    .summary('Merges two adjacent ranges.')
    .description(
      'Merges two adjacent ranges: the range with the smaller keys takes over the keys of the other, which is removed. ' +
        'Both must have replicas on the same nodes, and all of these must be up; use `move` to get there. Adjacent ranges that ' +
        'became small and quiet are merged automatically unless the setting auto-merge is false.',
    )
    .argument('<range>', 'id of one range', readId)
    .argument('<neighbour>', 'id of the other range', readId)
    .addHelpText('after', examples('remora admin merge 2 9'));
  return addConnectionFlags(addWaitFlag(command), shell).action((one: number, other: number, flags: WaitFlags) =>
    withAdmin(flags, async (client) => {
      const { target, source } = await neighbours(client, one, other);
      const change = { $case: 'merge', value: { source: BigInt(source.id) } } as const;
      const done = `merged range ${source.id} into range ${target.id}`;
      await carryOut(client, { range: target, change, done }, flags, shell);
    }),
  );
}

export function moveCommand(shell: Shell): Command {
  const command = new Command('move')
    .summary('Moves a replica from one node to another.')
    .description(
      'Moves a replica of a range from one node to another. The new replica catches up before the old one is removed. A ' +
        'leader transfers its leadership first.',
    )
    .argument('<range>', 'id of the range', readId)
    .argument('<from>', 'id or name of the node that has the replica')
    .argument('<to>', 'id or name of the node that should get the replica')
    .addHelpText('after', examples('remora admin move 2 n1 n4', 'remora admin move 2 n1 n4 --no-wait --json'));
  return addConnectionFlags(addWaitFlag(command), shell).action(
    (rangeId: number, fromNode: string, toNode: string, flags: WaitFlags) =>
      withAdmin(flags, async (client) => {
        const [range, names] = await rangeAndNodes(client, rangeId);
        const [from, to] = [names.find(fromNode), names.find(toNode)];
        const change = { $case: 'move', value: { fromNode: BigInt(from.id), toNode: BigInt(to.id) } } as const;
        const done = `moved the replica of range ${rangeId} from ${from.name} to ${to.name}`;
        await carryOut(client, { range, change, done }, flags, shell);
      }),
  );
}

export function addReplicaCommand(shell: Shell): Command {
  const command = new Command('add-replica')
    .summary('Adds a replica of a range.')
    .description(
      'Adds a replica on the given node to a range that has too few. Otherwise, the masters add it on a node that they ' +
        'choose, after the old replica was silent for the time set by down-after.',
    )
    .argument('<range>', 'id of the range', readId)
    .argument('<node>', 'id or name of the node that should get the replica')
    .addHelpText('after', examples('remora admin add-replica 2 n4'));
  return addConnectionFlags(addWaitFlag(command), shell).action((rangeId: number, wanted: string, flags: WaitFlags) =>
    withAdmin(flags, async (client) => {
      const [range, names] = await rangeAndNodes(client, rangeId);
      const node = names.find(wanted);
      const change = { $case: 'addReplica', value: { node: BigInt(node.id) } } as const;
      await carryOut(
        client,
        { range, change, done: `added a replica of range ${rangeId} on ${node.name}` },
        flags,
        shell,
      );
    }),
  );
}

interface RemoveFlags extends WaitFlags {
  readonly yes?: true;
}

export function removeReplicaCommand(shell: Shell): Command {
  const command = new Command('remove-replica')
    .summary('Removes a replica of a range.')
    .description(
      'Removes one replica of a range. If too few remain, the masters add one on a node that they choose. To choose the ' +
        'node yourself, use `move`.',
    )
    .argument('<range>', 'id of the range', readId)
    .argument('<node>', 'id or name of the node that has the replica')
    .addHelpText('after', examples('remora admin remove-replica 2 n1', 'remora admin remove-replica 2 n1 --yes'));
  return addConnectionFlags(addWaitFlag(addYesFlag(command)), shell).action(
    (rangeId: number, wanted: string, flags: RemoveFlags) =>
      withAdmin(flags, async (client) => {
        const [range, names] = await rangeAndNodes(client, rangeId);
        const node = names.find(wanted);
        await confirm(`The replica of range ${rangeId} on ${node.name} will be deleted.`, flags.yes, shell);
        const change = { $case: 'removeReplica', value: { node: BigInt(node.id) } } as const;
        const done = `removed the replica of range ${rangeId} from ${node.name}`;
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

/** Begins the change, and by default follows it to its end. */
async function carryOut(client: AdminClient, wish: Wish, flags: WaitFlags, shell: Shell): Promise<void> {
  const begun = await client.changeRange(wish.range, wish.change);
  if (!flags.wait) return print({ text: `operator ${begun.id} is running`, json: begun }, flags, shell);
  const ended = await lookingOn(shell, (follower) => awaitOperator(client, begun, follower));
  if (ended !== undefined) print({ text: wish.done, json: ended }, flags, shell);
}

async function rangeAndNodes(client: AdminClient, rangeId: number): Promise<readonly [admin.Range, NodeNames]> {
  const [range, { nodes }] = await Promise.all([client.range(rangeId), client.nodes()]);
  return [range, new NodeNames(nodes)];
}
