import type { OperatorJson } from '@remora/gateway/http/json/cluster';
import { steeringRefusal } from '../../api/access.ts';
import { cancelOperator } from '../../api/cluster.ts';
import { Action } from '../../kit/action.tsx';
import { State } from '../../kit/badge.tsx';
import { Empty } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { count, span } from '../../logic/format.ts';
import { RangeLink } from '../nodes/node-link.tsx';

interface OperatorTableProps {
  readonly operators: readonly OperatorJson[];
  readonly hasEnded: boolean;
  readonly empty: string;
  done(): void;
}

/** Changes of ranges, step by step. */
export function OperatorTable({ operators, hasEnded, empty, done }: OperatorTableProps) {
  const cancel: Column<OperatorJson> = { title: '', width: 'shrink', cell: ({ id }) => <Cancel id={id} done={done} /> };
  return (
    <Table
      label={hasEnded ? 'Ended operators' : 'Operators in progress'}
      columns={hasEnded ? [...COLUMNS, ENDED] : [...COLUMNS, AGE, cancel]}
      rows={operators}
      keyOf={({ id }) => id}
      tone={({ status }) => (status === 'failed' || status === 'timedOut' ? 'bad' : undefined)}
      empty={<Empty title={empty} />}
    />
  );
}

const COLUMNS: readonly Column<OperatorJson>[] = [
  { title: 'Range', width: 'shrink', cell: ({ rangeId }) => <RangeLink id={rangeId} /> },
  { title: 'Purpose', width: 'shrink', cell: ({ kind }) => kind },
  { title: 'Status', width: 'shrink', cell: ({ status }) => <State name={status} /> },
  { title: 'Step', cell: (operator) => <Step operator={operator} /> },
  { title: 'Reason', isMinor: true, cell: ({ reason }) => <Text value={reason} max={200} /> },
];

const AGE: Column<OperatorJson> = { title: 'For', isNumber: true, cell: ({ ageMs }) => span(ageMs) };
const ENDED: Column<OperatorJson> = {
  title: 'Ended',
  isNumber: true,
  cell: ({ endedMs = 0 }) => `${span(endedMs)} ago`,
};

function Step({ operator: { steps, step, outcome } }: { readonly operator: OperatorJson }) {
  const current = steps[step];
  return (
    <span class="parts">
      <span class="muted">
        {count(Math.min(step, steps.length))} of {count(steps.length)}
      </span>
      {current !== undefined && <Text value={current} max={120} />}
      {outcome !== '' && (
        <span class="muted">
          <Text value={outcome} max={200} />
        </span>
      )}
    </span>
  );
}

function Cancel({ id, done }: { readonly id: number; done(): void }) {
  return (
    <Action
      label="Cancel"
      isSmall
      title="Cancel this operator?"
      explanation="The effects of its completed steps stay."
      refusal={steeringRefusal()}
      command={() => ['remora', 'admin', 'operators', 'cancel', String(id)]}
      run={async () => {
        const { status } = await cancelOperator(id);
        return `The operator is ${status}.`;
      }}
      done={done}
    />
  );
}
