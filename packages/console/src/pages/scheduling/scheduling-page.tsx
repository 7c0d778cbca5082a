import { useState } from 'preact/hooks';
import { operators, schedulers } from '../../api/cluster.ts';
import { useResource } from '../../app/hooks.ts';
import { useLiveResource } from '../../app/live.ts';
import { Command } from '../../kit/command.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Loaded } from '../../kit/states.tsx';
import { count } from '../../logic/format.ts';
import { OperatorTable } from './operator-table.tsx';
import { Rebalance } from './rebalance.tsx';
import { useRunningOperators } from './running.ts';
import { SchedulerTable } from './scheduler-table.tsx';

const ENDED_EVERY_MS = 5_000;
const SHORT = 12;

/** What the masters change, what they have changed, and what makes them do so. */
export function SchedulingPage() {
  const running = useRunningOperators();
  const ended = useResource('ended', (signal) => operators({ ended: true }, signal), { everyMs: ENDED_EVERY_MS });
  const all = useLiveResource('schedulers', {
    of: (state) => state,
    key: 'schedulers',
    load: schedulers,
    everyMs: ENDED_EVERY_MS,
  });
  const [isWhole, setWhole] = useState(false);
  const reload = (): void => {
    running.reload();
    ended.reload();
    all.reload();
  };
  return (
    <Page title="Scheduling" actions={<Rebalance done={reload} />}>
      <Card isFlush title={`In progress (${count(running.data?.length ?? 0)})`}>
        <Loaded of={running} lines={2}>
          {(rows) => (
            <OperatorTable operators={rows} hasEnded={false} empty="No range is being changed." done={reload} />
          )}
        </Loaded>
      </Card>
      <Card isFlush title="Schedulers">
        <Loaded of={all}>{({ schedulers: rows }) => <SchedulerTable schedulers={rows} done={reload} />}</Loaded>
      </Card>
      <Card
        isFlush
        title="Ended"
        aside={
          (ended.data?.length ?? 0) > SHORT && (
            <button type="button" class="button button-small" onClick={() => setWhole(!isWhole)}>
              {isWhole ? 'Show the newest' : `Show all ${count(ended.data?.length ?? 0)}`}
            </button>
          )
        }
      >
        <Loaded of={ended}>
          {(rows) => (
            <OperatorTable
              operators={isWhole ? rows : rows.slice(0, SHORT)}
              hasEnded
              empty="No change has ended yet."
              done={reload}
            />
          )}
        </Loaded>
      </Card>
      <Command words={['remora', 'admin', 'operators']} />
    </Page>
  );
}
