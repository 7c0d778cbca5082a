/** The alert rules, by Prometheus' own tool (Debian: `apt-get install prometheus`): each fires for what it is about. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HEALTH_CONDITIONS } from '@remora/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { describeWith } from '../support/needs.ts';

const FILE = fileURLToPath(new URL('../../deploy/prometheus/remora-alerts.yml', import.meta.url));

interface Rule {
  readonly alert: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

const rules = parse(readFileSync(FILE, 'utf8')).groups.flatMap(
  ({ rules }: { rules: readonly Rule[] }) => rules,
) as Rule[];
const conditions = new Map(
  Object.keys(HEALTH_CONDITIONS).map((name) => [`Remora${name.slice(0, 1).toUpperCase()}${name.slice(1)}`, name]),
);

/** Longer than any rule waits. */
const AFTER = '8h';

/** Series by minutes, as promtool writes them: `start+step x times`. */
type Series = Readonly<Record<string, string>>;

const at = (labels: string) => `{job="remora",instance="n1"${labels === '' ? '' : `,${labels}`}}`;
const histogram = (name: string, labels: string, slow: string): Series => ({
  [`${name}_bucket${at(`${labels}le="0.1"`)}`]: '0x500',
  [`${name}_bucket${at(`${labels}le="10"`)}`]: slow,
  [`${name}_bucket${at(`${labels}le="+Inf"`)}`]: slow,
});
const KNOWN: Series = { [`remora_condition${at('name="noLeader",severity="critical",own="no"')}`]: '0x500' };

/** What makes each rule fire that is about no condition, and the labels of the alert. */
const CAUSES: Readonly<Record<string, { readonly series: Series; readonly labels: Readonly<Record<string, string>> }>> =
  {
    RemoraNotScraped: { series: { 'up{job="remora"}': '0x500' }, labels: {} },
    RemoraNodeHasNoLeader: { series: { [`remora_has_leader${at('')}`]: '0x500' }, labels: { instance: 'n1' } },
    RemoraLeadersChange: {
      series: {
        [`remora_leader_changes_total${at('')}`]: '0+1x500',
        [`remora_range_term${at('range="1"')}`]: '1x500',
      },
      labels: { instance: 'n1' },
    },
    RemoraSlowRequests: { series: histogram('remora_request_seconds', 'kind="put",', '0+60x500'), labels: {} },
    RemoraSlowLog: { series: histogram('remora_log_sync_seconds', '', '0+60x500'), labels: { instance: 'n1' } },
    RemoraSlowNetwork: {
      series: histogram('remora_peer_round_trip_seconds', 'peer="2",', '0+60x500'),
      labels: { instance: 'n1', peer: '2' },
    },
    RemoraEventLoopHeld: {
      series: { [`remora_loop_section_seconds_sum${at('section="checkpoint"')}`]: '0+30x500' },
      labels: { instance: 'n1' },
    },
    RemoraRequestsRefused: {
      series: { [`remora_gateway_refused_total${at('reason="rate"')}`]: '0+600x500' },
      labels: { reason: 'rate' },
    },
    RemoraSessionsExpire: {
      series: {
        [`remora_sessions_total${at('event="expired"')}`]: '0+60x500',
        [`remora_sessions_total${at('event="closed"')}`]: '0+6x500',
      },
      labels: { event: 'expired' },
    },
    RemoraLocksForced: {
      series: { [`remora_lock_ends_total${at('kind="exclusive",how="forced"')}`]: '0+1x500' },
      labels: { how: 'forced' },
    },
    RemoraPasswordsRefused: {
      series: { [`remora_auth_refused_log_ins_total${at('reason="password"')}`]: '0+600x500' },
      labels: { reason: 'password' },
    },
    RemoraAuditLinesLost: {
      series: { [`remora_audit_dropped_total${at('')}`]: '0+1x500' },
      labels: { instance: 'n1' },
    },
    RemoraDiskFills: {
      series: { [`remora_disk_available_bytes${at('')}`]: '1500000-1000x500' },
      labels: { instance: 'n1' },
    },
    RemoraNodeRestarts: {
      series: {
        [`process_start_time_seconds${at('')}`]: '0+300x500',
        [`remora_build_info${at('version="1",node="24"')}`]: '1x500',
      },
      labels: { instance: 'n1' },
    },
  };

/** Both nodes show the condition: that is one alert. */
function causeOf(name: string): { readonly series: Series; readonly labels: Readonly<Record<string, string>> } {
  const severity = HEALTH_CONDITIONS[name as keyof typeof HEALTH_CONDITIONS].severity;
  const of = (instance: string, own: string) =>
    `remora_condition{job="remora",instance="${instance}",name="${name}",severity="${severity}",own="${own}"}`;
  return { series: { [of('n1', 'yes')]: '1x500', [of('n2', 'no')]: '1x500' }, labels: { name } };
}

/** After hours the alert fires. */
function testOf(rule: Rule) {
  const { alert, labels: own, annotations } = rule;
  const condition = conditions.get(alert);
  const cause = condition === undefined ? CAUSES[alert] : causeOf(condition);
  if (cause === undefined) throw new Error(`say in this test what makes ${alert} fire`);
  const job = alert === 'RemoraNotScraped' ? {} : { job: 'remora' };
  const expected = { exp_labels: { ...own, ...job, ...cause.labels }, exp_annotations: annotations };
  return {
    interval: '1m',
    input_series: input(cause.series),
    alert_rule_test: [{ eval_time: AFTER, alertname: alert, exp_alerts: [expected] }],
  };
}

/** In a cluster that is well, none fires. */
const QUIET = {
  interval: '1m',
  input_series: input(KNOWN),
  alert_rule_test: rules.map(({ alert }) => ({ eval_time: AFTER, alertname: alert, exp_alerts: [] })),
};

function input(series: Series): readonly object[] {
  return Object.entries(series).map(([name, values]) => ({ series: name, values }));
}

const missing =
  spawnSync('promtool', ['--version']).error === undefined
    ? undefined
    : 'promtool is missing (apt-get install prometheus)';

test('every condition that is critical or a warning has a rule', () => {
  const wanted = [...conditions].filter(
    ([, name]) => HEALTH_CONDITIONS[name as keyof typeof HEALTH_CONDITIONS].severity !== 'info',
  );
  expect(rules.map(({ alert }) => alert).filter((alert) => conditions.has(alert))).toEqual(
    wanted.map(([alert]) => alert),
  );
});

describeWith(missing, 'the alert rules', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'remora-alerts-'));
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  test('are what Prometheus accepts', () => {
    const { status, stdout } = spawnSync('promtool', ['check', 'rules', FILE]);
    expect(stdout.toString()).toContain(`SUCCESS: ${rules.length} rules found`);
    expect(status).toBe(0);
  });

  test('fire for their cause, once for the cluster, and not without it', () => {
    const file = join(dir, 'tests.yml');
    writeFileSync(
      file,
      JSON.stringify({ rule_files: [FILE], evaluation_interval: '2m', tests: [...rules.map(testOf), QUIET] }),
    );
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file]);
    expect(`${stdout}${stderr}`).toContain('SUCCESS');
    expect(status).toBe(0);
  });
});
