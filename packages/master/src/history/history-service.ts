import type { Clock, ServiceError } from '@remora/base';
import { masterActivity, masterHeat, type RpcRegistry } from '@remora/protocol';
import type { ClusterHistory } from './cluster-history.ts';
import { HeatAnswers } from './heat-answers.ts';

export interface HistoryServiceDeps {
  readonly clock: Clock;
  readonly history: ClusterHistory;
  /** Calls back once this master is known to lead now (M6 of master.ts), or with the error. */
  readonly confirm: (done: (error: ServiceError | undefined) => void) => void;
}

/** Serves the history of the masters' leader. */
export function registerHistory(registry: RpcRegistry, { clock, history, confirm }: HistoryServiceDeps): void {
  const heat = new HeatAnswers({ clock, history });
  registry.handle(masterActivity, ({ minutes }, _context, done) =>
    confirm((error) => {
      if (error !== undefined) return done(error, undefined);
      const span = history.span(minutes, clock.wallMs());
      done(undefined, { span, nodes: history.activity(span) });
    }),
  );
  registry.handle(masterHeat, (request, _context, done) =>
    confirm((error) => (error === undefined ? heat.answer(request, done) : done(error, undefined))),
  );
}
