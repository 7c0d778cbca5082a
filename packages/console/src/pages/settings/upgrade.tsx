import type { UpgradeJson } from '@remora/gateway/http/json/cluster';
import { steeringRefusal } from '../../api/access.ts';
import { finalizeUpgrade, upgrade } from '../../api/cluster.ts';
import { useResource } from '../../app/hooks.ts';
import { Action } from '../../kit/action.tsx';
import { State } from '../../kit/badge.tsx';
import { Card } from '../../kit/page.tsx';
import { Loaded, Note } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';

type NodeVersions = UpgradeJson['nodes'][number];

/** How far an upgrade has come. */
export function Upgrade() {
  const state = useResource('upgrade', upgrade, { everyMs: 10_000 });
  return (
    <Card isFlush title="Version" aside={state.data && <Finalize state={state.data} done={state.reload} />}>
      <Loaded of={state} lines={4}>
        {({ nodes, blockers, inForce, newest }) => (
          <>
            {newest !== inForce && blockers.length > 0 && (
              <Note tone="warn">
                Version {newest} cannot come into force yet:
                <ul>
                  {blockers.map((blocker) => (
                    <li key={blocker}>
                      <Text value={blocker} max={300} />
                    </li>
                  ))}
                </ul>
              </Note>
            )}
            <Table label="Versions of the nodes" columns={COLUMNS} rows={inOrder(nodes)} keyOf={({ id }) => id} />
          </>
        )}
      </Loaded>
    </Card>
  );
}

function inOrder(nodes: readonly NodeVersions[]): readonly NodeVersions[] {
  return [...nodes].sort((a, b) => a.id - b.id);
}

const COLUMNS: readonly Column<NodeVersions>[] = [
  { title: 'Node', cell: ({ name }) => <Text value={name} max={40} /> },
  { title: 'State', cell: ({ state }) => <State name={state} /> },
  { title: 'Release', cell: ({ build }) => build },
  {
    title: 'Can write',
    isMinor: true,
    cell: ({ canWriteFrom, canWriteTo }) => (canWriteFrom === '' ? 'unknown' : `${canWriteFrom} to ${canWriteTo}`),
  },
  { title: 'Knows in force', isMinor: true, cell: ({ knows }) => (knows === '' ? 'unknown' : knows) },
];

function Finalize({ state, done }: { readonly state: UpgradeJson; done(): void }) {
  const { inForce, newest, blockers } = state;
  if (inForce === newest) return <>{inForce} is in force, the newest that these nodes can write</>;
  return (
    <>
      {inForce} is in force
      <Action
        label={`Finalize ${newest}`}
        title={`Bring version ${newest} into force?`}
        isDangerous
        explanation="From then on, nodes of the earlier release cannot join. A version never decreases."
        confirmation={newest}
        refusal={steeringRefusal() ?? blockers[0]}
        command={() => ['remora', 'admin', 'upgrade', 'finalize']}
        run={async () => {
          const after = await finalizeUpgrade(newest);
          return `Version ${after.inForce} is in force.`;
        }}
        done={done}
      />
    </>
  );
}
