import type { NodeJson, RangeJson } from '@remora/gateway/http/json/cluster';
import { steeringRefusal } from '../../api/access.ts';
import { changeRange, type RangeChange, transferLeader } from '../../api/cluster.ts';
import { nodeName } from '../../app/cluster-hook.ts';
import { Action, type ActionField } from '../../kit/action.tsx';
import { routingKey } from '../../logic/routing-key.ts';

interface RangeActionsProps {
  readonly range: RangeJson;
  readonly nodes: readonly NodeJson[];
  /** The range behind it; absent: it is the last one. */
  readonly next: RangeJson | undefined;
  done(): void;
}

/** What can be done with a range. Each begins an operator, whose progress the page shows. */
export function RangeActions({ range, nodes, next, done }: RangeActionsProps) {
  const { id, leaderNode, replicas } = range;
  const having = nodes.filter((node) => replicas.some(({ nodeId }) => nodeId === node.id));
  const lacking = nodes.filter((node) => !having.includes(node) && node.duty === 'serving');
  const followers = having.filter((node) => node.id !== leaderNode);
  const shared = { refusal: steeringRefusal(), done };
  const none = shared.refusal ?? (lacking.length === 0 ? 'Every node that serves has a replica of it.' : undefined);
  const idOf = (name: string): number => nodes.find((node) => node.name === name)?.id ?? 0;
  const command = (verb: string, ...words: readonly string[]) => ['remora', 'admin', verb, ...words];
  return (
    <>
      <Action
        {...shared}
        label="Transfer leader"
        title="Let another node lead the range?"
        explanation="Takes a moment; requests wait meanwhile. Balancing may move the leader again."
        fields={[nodeField('to', 'Node that leads afterwards', followers)]}
        command={({ to = '' }) => command('transfer-leader', String(id), to)}
        run={async ({ to = '' }) => {
          const { fromNode } = await transferLeader(id, idOf(to));
          return `${to} leads range ${id}; before, ${nodeName(nodes, fromNode)} did.`;
        }}
      />
      <Action
        {...shared}
        label="Split"
        title="Split the range in two?"
        explanation="In the middle of its keys, or at a key, which becomes the first one of the new range."
        fields={[{ name: 'at', label: 'Key', hint: 'Empty: in the middle. A plain key, or lock:orders/ for a lock.' }]}
        command={({ at = '' }) => (at === '' ? command('split', String(id)) : command('split', '--key', at))}
        run={({ at = '' }) => begin(range, 'split', at === '' ? {} : { at: routingKey(at) })}
      />
      <Action
        {...shared}
        label="Merge"
        title="Merge the range with the next one?"
        explanation={`Range ${id} takes over the keys of range ${next?.id ?? ''}, which ends. Both must be on the same nodes.`}
        refusal={shared.refusal ?? (next === undefined ? 'It is the last range.' : undefined)}
        command={() => command('merge', String(id), String(next?.id ?? ''))}
        run={() => begin(range, 'merge', { source: next?.id ?? 0 })}
      />
      <Action
        {...shared}
        label="Move"
        title="Move a replica to another node?"
        explanation="The new replica is in place before the old one is removed."
        refusal={none}
        fields={[nodeField('from', 'From', having), nodeField('to', 'To', lacking)]}
        command={({ from = '', to = '' }) => command('move', String(id), from, to)}
        run={({ from = '', to = '' }) => begin(range, 'move', { from: idOf(from), to: idOf(to) })}
      />
      <Action
        {...shared}
        label="Add replica"
        title="Add a replica?"
        explanation="For a range that has too few."
        refusal={none}
        fields={[nodeField('node', 'On node', lacking)]}
        command={({ node = '' }) => command('add-replica', String(id), node)}
        run={({ node = '' }) => begin(range, 'add-replica', { node: idOf(node) })}
      />
      <Action
        {...shared}
        label="Remove replica"
        title="Remove a replica?"
        isDangerous
        explanation="The range survives fewer failures until it gets another one."
        fields={[nodeField('node', 'From node', having)]}
        command={({ node = '' }) => command('remove-replica', String(id), node)}
        run={({ node = '' }) => begin(range, 'remove-replica', { node: idOf(node) })}
      />
    </>
  );
}

function nodeField(name: string, label: string, nodes: readonly NodeJson[]): ActionField {
  const names = nodes.map((node) => node.name);
  return { name, label, isRequired: true, initial: names[0] ?? '', options: names };
}

async function begin(
  range: RangeJson,
  change: RangeChange,
  body: Readonly<Record<string, string | number>>,
): Promise<string> {
  const { status, steps } = await changeRange(range, change, body);
  return `The operator is ${status}: ${steps.join(', ')}.`;
}
