import { Actions, type ActionsDeps } from '../admin/actions.ts';
import { ScheduleCoordinator, type ScheduleCoordinatorDeps } from './schedule-coordinator.ts';

/** The state that a leader keeps only for its term (master.ts M4). */
export interface LeaderTerm {
  readonly care: ScheduleCoordinator;
  readonly actions: Actions;
}

export function beginTerm(deps: ScheduleCoordinatorDeps & Pick<ActionsDeps, 'masters'>): LeaderTerm {
  const care = new ScheduleCoordinator(deps);
  const actions = new Actions({
    ...{ state: deps.state, scheduling: care.scheduling, masters: deps.masters },
    monotonicMs: () => care.nowMs,
    wallMs: () => deps.clock.wallMs(),
    refresh: () => care.refresh(),
    restsBecause: () => care.restsBecause,
    setDuty: (request, done) => care.setDuty(request, done),
    pauseScheduler: (request, done) => care.pauseScheduler(request, done),
  });
  return { care, actions };
}
