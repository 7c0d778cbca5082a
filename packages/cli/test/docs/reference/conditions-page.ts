import { ALERT_AFTER, HEALTH_CONDITIONS, type HealthConditionKind } from '@remora/protocol';
import { alertName } from '../deploy/alert-rules.ts';
import { code, table } from './table.ts';

const READY: Readonly<Record<'always' | 'unlessAlone' | 'never', string>> = {
  always: '503 at this node',
  unlessAlone: '503 at this node while another gateway would serve better',
  never: '200',
};

export function conditionsPage(): string {
  const kinds = Object.entries<HealthConditionKind>(HEALTH_CONDITIONS).sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = kinds.map(([name, { severity, scope }]) => [
    `[\`${name}\`](#${name.toLowerCase()})`,
    severity,
    scope === 'node' ? 'a node' : 'the cluster',
  ]);
  return `# Conditions

Ask what is wrong. All views show the same conditions, by the same names:

\`\`\`sh
remora admin check || true
remora status
curl -s http://127.0.0.1:7483/ready
curl -s http://127.0.0.1:7483/metrics | grep '^remora_condition' | grep -v ' 0$' || true
\`\`\`

- \`critical\`: clients are rejected or kept waiting. \`warning\`: clients are served, and something needs attention if it
  stays. \`info\`: somebody wants it so, or it ends by itself. \`check\` exits with 1 if anything is critical or a warning.
- Each view shows a text that names the node, the range or the keys (\`/ready\` names no keys), and what to do.
- A node learns of conditions with its heartbeats, within about a second. The masters send each node at most 100: first
  those that make this node unready, then those that make others unready, then the worst of the rest. While the masters
  have no leader, a node shows the last ones it heard.
- \`deploy/prometheus/remora-alerts.yml\` has an alert rule for each condition that is critical or a warning.

${table(['Condition', 'Severity', 'Concerns'], rows)}

${kinds.map(([name, kind]) => section(name, kind)).join('\n\n')}
`;
}

function section(name: string, kind: HealthConditionKind): string {
  const { severity, means, advice, page, unready = 'never' } = kind;
  const after = severity === 'info' ? undefined : (kind.alertAfter ?? ALERT_AFTER[severity]);
  const alert = after === undefined ? 'none' : `\`${alertName(name)}\` after ${after}`;
  const more = page === undefined ? '' : ` [${page[0]}](../${page[1]}).`;
  return `## ${name}

${means}

**What to do:** ${advice}${more}

Severity: ${code(severity)}. \`/ready\`: ${READY[unready]}. Alert: ${alert}.`;
}
