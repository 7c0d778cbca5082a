import { type Clock, ServiceError } from '@remora/base';
import { type Done, type HeatReply, masterActivity, masterHeat, type RpcRegistry } from '@remora/protocol';
import type { ClusterHistory } from './cluster-history.ts';
import { heatQuery } from './heat-query.ts';

export interface HistoryServiceDeps {
  readonly clock: Clock;
  readonly history: ClusterHistory;
  /** Calls back once this master is known to lead now (M6 of master.ts), or with the error. */
  readonly confirm: (done: (error: ServiceError | undefined) => void) => void;
}

/** Queries of the load by key that may be in progress: each takes turns of the event loop (heat-query.ts HQ2). */
const QUERIES_MAX = 4;

/** Serves the history of the masters' leader. */
export function registerHistory(registry: RpcRegistry, { clock, history, confirm }: HistoryServiceDeps): void {
  let running = 0;
  registry.handle(masterActivity, ({ minutes }, _context, done) =>
    confirm((error) => {
      if (error !== undefined) return done(error, undefined);
      const span = history.span(minutes, clock.wallMs());
      done(undefined, { span, nodes: history.activity(span) });
    }),
  );
  registry.handle(masterHeat, (request, _context, done) =>
    confirm((error) => {
      const refused = error ?? (running >= QUERIES_MAX ? tooMany() : undefined);
      if (refused !== undefined) return done(refused, undefined);
      running++;
      const span = history.span(request.minutes, clock.wallMs());
      const query = heatQuery((minute) => history.heat(minute), span, request);
      byTurns(clock, query, (_none, reply) => {
        running--;
        done(undefined, reply);
      });
    }),
  );
}

function byTurns(clock: Clock, query: Generator<void, HeatReply>, done: Done<HeatReply>): void {
  const turn = query.next();
  if (turn.done) done(undefined, turn.value);
  else clock.setTimer(0, () => byTurns(clock, query, done));
}

function tooMany(): ServiceError {
  const message = `the masters' leader is answering ${QUERIES_MAX} other requests for the load by key; try again later`;
  return new ServiceError('RESOURCE_EXHAUSTED', message, { details: { retryAfterMs: 1_000 } });
}
