import { REFUSED_LOG_INS, ROOT } from '@remora/auth';
import type { MetricsRegistry } from '@remora/base/node';
import type { EntryDeps } from './platform.ts';

/** What operators see of users and log-ins; read on request. Names of users are not shown: anybody may ask. */
export function authMetrics(
  metrics: MetricsRegistry,
  { authenticator, known }: Pick<EntryDeps, 'authenticator' | 'known'>,
): void {
  const gauge = (name: string, help: string) => metrics.gauge({ name: `remora_auth_${name}`, help });
  const enabled = gauge('enabled', '1 while authentication is on, as far as this node knows.');
  const users = gauge('users', 'Number of users.');
  const roots = gauge('root_users', 'Number of users with the role root.');
  const refused = metrics.observedCounter({
    name: 'remora_auth_refused_log_ins_total',
    help: 'Log-ins and tokens that this node refused, by reason.',
    labels: ['reason'],
  });
  metrics.onRender(() => {
    const { image } = known;
    enabled.set(image.enabled ? 1 : 0);
    users.set(image.users.length);
    roots.set(image.users.filter(({ roles }) => roles.includes(ROOT)).length);
    for (const reason of REFUSED_LOG_INS) refused.labels(reason).set(authenticator.refused[reason]);
  });
}
