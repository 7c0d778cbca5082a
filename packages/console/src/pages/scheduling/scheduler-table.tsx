import type { SchedulerJson } from '@remora/gateway/http/json/cluster';
import { steeringRefusal } from '../../api/access.ts';
import { pauseScheduler } from '../../api/cluster.ts';
import { Action } from '../../kit/action.tsx';
import { Badge } from '../../kit/badge.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { durationProblem, parseDuration } from '../../logic/duration.ts';
import { span } from '../../logic/format.ts';

interface SchedulerTableProps {
  readonly schedulers: readonly SchedulerJson[];
  done(): void;
}

export function SchedulerTable({ schedulers, done }: SchedulerTableProps) {
  const columns: readonly Column<SchedulerJson>[] = [
    ...COLUMNS,
    { title: '', width: 'shrink', cell: (scheduler) => <PauseOrResume scheduler={scheduler} done={done} /> },
  ];
  return <Table label="Schedulers" columns={columns} rows={schedulers} keyOf={({ name }) => name} />;
}

const COLUMNS: readonly Column<SchedulerJson>[] = [
  {
    title: 'Scheduler',
    cell: ({ name, description }) => (
      <span class="parts parts-lines">
        <code>{name}</code>
        <span class="muted">
          <Text value={description} max={300} />
        </span>
      </span>
    ),
  },
  {
    title: 'State',
    width: 'shrink',
    cell: ({ pausedMs = 0 }) =>
      pausedMs > 0 ? <Badge tone="warn">paused for {span(pausedMs)}</Badge> : <Badge tone="ok">runs</Badge>,
  },
  { title: 'Last result', isMinor: true, cell: ({ last }) => <Text value={last} max={300} /> },
];

function PauseOrResume({ scheduler, done }: { readonly scheduler: SchedulerJson; done(): void }) {
  const { name, pausedMs = 0 } = scheduler;
  const refusal = steeringRefusal();
  if (pausedMs > 0) {
    return (
      <Action
        label="Resume"
        isSmall
        title={`Resume ${name}?`}
        explanation="It looks for work again at once."
        refusal={refusal}
        command={() => ['remora', 'admin', 'schedulers', 'resume', name]}
        run={async () => {
          await pauseScheduler(name, 0);
          return `${name} runs again.`;
        }}
        done={done}
      />
    );
  }
  return (
    <Action
      label="Pause"
      isSmall
      title={`Pause ${name}?`}
      explanation="It begins nothing new. Operators in progress continue."
      refusal={refusal}
      fields={[{ name: 'for', label: 'For how long', initial: '1h', isRequired: true, check: durationProblem }]}
      command={({ for: time = '' }) => ['remora', 'admin', 'schedulers', 'pause', name, '--for', time]}
      run={async ({ for: time = '' }) => {
        await pauseScheduler(name, parseDuration(time) ?? 0);
        return `${name} is paused for ${time}.`;
      }}
      done={done}
    />
  );
}
