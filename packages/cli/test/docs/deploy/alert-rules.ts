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
  /** The page that explains it, in the repository; `MONITOR` unless given. */
  readonly docs?: string;
}

const MONITOR = 'docs/how-to/cluster/monitor.md#alerts';

/** Sums and maxima over the nodes of a cluster keep all other labels, such as the name of the cluster. */
const OVER_NODES = 'without (instance, pod)';
const quantile99 = (histogram: string, without = 'without (instance, pod, kind, peer)') =>
  `histogram_quantile(0.99, sum ${without} (rate(${histogram}_bucket[5m])))`;

/** What no condition says. */
const OTHER_RULES: readonly AlertRule[] = [
  {
    name: 'RemoraNotScraped',
    expression: 'absent(remora_condition)',
    after: '5m',
    severity: 'critical',
    summary: 'Prometheus gets no metrics of any node, so no other alert of Remora can fire.',
    advice: 'Check that the nodes run, and that Prometheus scrapes their health listener (`--health-listen`).',
  },
  {
    name: 'RemoraNodeHasNoLeader',
    expression: 'remora_has_leader == 0',
    after: '2m',
    severity: 'critical',
    summary: 'A node knows no leader of the masters, or of a range that it has a replica of. Others may know one.',
    advice: 'Check its network to the peer ports of the other nodes; its log says which it cannot reach.',
  },
  {
    name: 'RemoraLeadersChange',
    expression: 'increase(remora_leader_changes_total[15m]) > 10 + 3 * count without (range) (remora_range_term)',
    after: '5m',
    severity: 'warning',
    summary: 'Leaders change again and again: each change delays requests for up to a second.',
    advice:
      'Look for slow disks (`remora_log_sync_seconds`), lost packets (`remora_peer_round_trip_seconds`) and busy CPUs.',
  },
  {
    name: 'RemoraSlowRequests',
    expression: `${quantile99('remora_request_seconds')} > 1`,
    after: '10m',
    severity: 'warning',
    summary: 'One request in a hundred takes more than a second.',
    advice: 'The lines "a request was slow" in the logs say where the time went; see also RemoraSlowLog.',
  },
  {
    name: 'RemoraSlowLog',
    expression: `${quantile99('remora_log_sync_seconds', 'without (kind)')} > 0.1`,
    after: '10m',
    severity: 'warning',
    summary: 'One synced write in a hundred to the log of a node takes more than 100 ms: every write waits for it.',
    advice: 'Use a faster disk, or move other programs away from it. `iostat -x 1` shows what it does.',
  },
  {
    name: 'RemoraSlowNetwork',
    expression: `${quantile99('remora_peer_round_trip_seconds', 'without (kind)')} > 0.25`,
    after: '10m',
    severity: 'warning',
    summary: 'A node gets the answers of another one late: elections may follow.',
    advice: 'Check the network between the two, and the CPU of the node that `peer` names.',
  },
  {
    name: 'RemoraEventLoopHeld',
    expression: `sum without (section) (rate(remora_loop_section_seconds_sum[5m])) > 0.3`,
    after: '10m',
    severity: 'warning',
    summary:
      'Long sections of work hold the event loop of a node for 30 % of the time. Everything else waits meanwhile.',
    advice: '`remora_loop_section_seconds` names the sections.',
    docs: 'docs/how-to/cluster/troubleshoot.md#the-event-loop-stalled',
  },
  {
    name: 'RemoraRequestsRefused',
    expression: `sum ${OVER_NODES} (rate(remora_gateway_refused_total[5m])) > 1`,
    after: '10m',
    severity: 'warning',
    summary: 'Requests are refused because a limit is reached.',
    advice: '`reason` says which limit. Reduce the load, or raise the limit if the cluster has capacity.',
    docs: 'docs/how-to/cluster/limit-load.md',
  },
  {
    name: 'RemoraSessionsExpire',
    expression:
      `sum ${OVER_NODES} (rate(remora_sessions_total{event="expired"}[15m])) > 0.05 and ignoring (event) ` +
      `sum ${OVER_NODES} (rate(remora_sessions_total{event="expired"}[15m])) > ` +
      `ignoring (event) sum ${OVER_NODES} (rate(remora_sessions_total{event="closed"}[15m]))`,
    after: '15m',
    severity: 'warning',
    summary: 'More sessions expire than are closed: clients crash, stall, or do not reach the cluster.',
    advice: 'Look at the clients: do they close sessions, and are their event loops blocked for longer than the TTL?',
  },
  {
    name: 'RemoraLocksForced',
    expression: `sum without (instance, pod, kind) (increase(remora_lock_ends_total{how="forced"}[10m])) > 0`,
    after: '0m',
    severity: 'warning',
    summary: 'Somebody took locks from their holders by force. Only fencing protects what they protect.',
    advice: 'Find out who did it (the audit log), and whether the former holders have stopped.',
  },
  {
    name: 'RemoraPasswordsRefused',
    expression: `sum ${OVER_NODES} (rate(remora_auth_refused_log_ins_total{reason="password"}[5m])) > 1`,
    after: '5m',
    severity: 'warning',
    summary: 'Somebody guesses passwords, or a client has an old one.',
    advice: 'The audit log has the addresses.',
    docs: 'docs/how-to/cluster/secure-a-cluster.md',
  },
  {
    name: 'RemoraAuditLinesLost',
    expression: 'increase(remora_audit_dropped_total[10m]) > 0',
    after: '0m',
    severity: 'warning',
    summary: 'The audit log lacks lines, because its disk is slow or full.',
    advice: 'Check the disk of `--audit-log`.',
    docs: 'docs/how-to/cluster/secure-a-cluster.md',
  },
  {
    name: 'RemoraDiskFills',
    expression: 'predict_linear(remora_disk_available_bytes[6h], 86400) < 0 and remora_disk_available_bytes > 0',
    after: '1h',
    severity: 'warning',
    summary: 'At the rate of the last hours, the disk of a node is full within a day.',
    advice: 'Add space, or delete keys and run `remora admin compact`.',
  },
  {
    name: 'RemoraNodeRestarts',
    expression: 'changes(process_start_time_seconds[1h]) > 3 and on (job, instance) remora_build_info',
    after: '0m',
    severity: 'warning',
    summary: 'A node restarts again and again.',
    advice: 'The last lines of its log before each end say why; the exit codes are explained.',
    docs: 'docs/how-to/cluster/troubleshoot.md#a-node-stopped-exit-codes',
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
export function alertRulesFile(): string {
  const rules = alertRules().map(
    ({ name, expression, after, severity, summary, advice, docs = MONITOR }) => `      - alert: ${name}
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
