/**
 * The alert rules of `deploy/prometheus/remora-alerts.yml`. Rules for conditions follow from their table; the others
 * are about what no condition says.
 */
import { ALERT_AFTER, HEALTH_CONDITIONS, type HealthConditionKind } from '@remora/protocol';

interface AlertRule {
  readonly name: string;
  readonly expression: string;
  readonly after: string;
  readonly severity: 'critical' | 'warning';
  readonly summary: string;
  /** What to do. */
  readonly advice: string;
  /** The page that explains it, in the repository. */
  readonly docs: string;
}

const MONITOR = 'docs/how-to/cluster/monitor.md#alerts';

/** What no condition says. */
const OTHER_RULES: readonly AlertRule[] = [
  {
    name: 'RemoraNoConditionsKnown',
    expression: 'absent(remora_condition)',
    after: '5m',
    severity: 'critical',
    summary: 'Prometheus gets no metrics of any node, so no other alert of Remora can fire.',
    advice: 'Check that the nodes run, and that Prometheus scrapes their health listener (`--health-listen`).',
    docs: MONITOR,
  },
];

function alertRules(): readonly AlertRule[] {
  return [
    ...Object.entries<HealthConditionKind>(HEALTH_CONDITIONS).flatMap(([name, kind]) => conditionRule(name, kind)),
    ...OTHER_RULES,
  ];
}

/** `RemoraDiskReserve` for `diskReserve`. */
export function alertName(condition: string): string {
  return `Remora${condition.slice(0, 1).toUpperCase()}${condition.slice(1)}`;
}

function conditionRule(name: string, kind: HealthConditionKind): readonly AlertRule[] {
  const { severity, means: summary, advice } = kind;
  if (severity === 'info') return [];
  return [
    {
      name: alertName(name),
      // All nodes show the same list: one alert for the cluster, not one for each node that shows it.
      expression: `max without (instance, pod, own) (remora_condition{name="${name}"}) > 0`,
      after: kind.alertAfter ?? ALERT_AFTER[severity],
      ...{ severity, summary, advice },
      docs: `docs/reference/conditions.md#${name.toLowerCase()}`,
    },
  ];
}

/** The file for Prometheus. JSON texts are YAML. */
function alertRulesFile(): string {
  const rules = alertRules().map(
    ({ name, expression, after, severity, summary, advice, docs }) => `      - alert: ${name}
        expr: ${JSON.stringify(expression)}
        for: ${after}
        labels:
          severity: ${severity}
        annotations:
          summary: ${JSON.stringify(summary)}
          action: ${JSON.stringify(advice)}
          docs: ${JSON.stringify(docs)}`,
  );
  return `# Generated from the code by \`npm run docs\`. Change the code, not this file.
# Alerts for Prometheus: add this file to \`rule_files\`. ${MONITOR.replace(/#.*/, '')} explains them.
groups:
  - name: remora
    rules:
${rules.join('\n')}
`;
}
