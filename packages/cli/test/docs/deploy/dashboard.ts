/** The Grafana dashboard of `deploy/grafana/remora.json`, from a table of panels. */

interface Panel {
  readonly title: string;
  readonly description?: string;
  readonly type?: 'stat' | 'table';
  /** Of Grafana: `s`, `bytes`, `reqps`, … */
  readonly unit?: string;
  readonly queries: readonly (readonly [expression: string, legend: string])[];
}

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** The nodes that the variables of the dashboard choose. */
const NODES = 'job=~"$job",instance=~"$instance"';
const of = (metric: string, more = '') => `${metric}{${NODES}${more === '' ? '' : `,${more}`}}`;
const rate = (metric: string, by: string, more = '') => `sum by (${by}) (rate(${of(metric, more)}[$__rate_interval]))`;
const quantile = (share: number, histogram: string, by = '') =>
  `histogram_quantile(${share}, sum by (${by === '' ? 'le' : `le, ${by}`}) (rate(${of(`${histogram}_bucket`)}[$__rate_interval])))`;
const time = (title: string, histogram: string, by: string, description: string): Panel => ({
  ...{ title, description, unit: 's' },
  queries: [
    [quantile(0.5, histogram, by), by === '' ? 'median' : `median {{${by}}}`],
    [quantile(0.99, histogram, by), by === '' ? '99 %' : `99 % {{${by}}}`],
  ],
});

const ROWS: readonly Row[] = [
  {
    title: 'Health',
    panels: [
      {
        ...{
          title: 'Conditions',
          type: 'table',
          description: 'What is wrong; docs/reference/conditions.md explains it.',
        },
        queries: [[`max by (name, severity) (${of('remora_condition')}) > 0`, '{{severity}} {{name}}']],
      },
      { title: 'Nodes', type: 'stat', queries: [[`count(${of('remora_build_info')})`, 'nodes']] },
      { title: 'Has a leader', type: 'stat', queries: [[`min(${of('remora_has_leader')})`, '1: yes']] },
      {
        title: 'Versions',
        type: 'stat',
        queries: [[`count by (version) (${of('remora_build_info')})`, '{{version}}']],
      },
    ],
  },
  {
    title: 'Requests',
    panels: [
      {
        ...{ title: 'Requests', unit: 'reqps' },
        queries: [[rate('remora_gateway_requests_total', 'class'), '{{class}}']],
      },
      time('Time of requests', 'remora_request_seconds', 'kind', "From the gateway's first attempt to the answer."),
      {
        ...{ title: 'Requests by kind', unit: 'reqps' },
        queries: [[rate('remora_request_seconds_count', 'kind'), '{{kind}}']],
      },
      {
        ...{ title: 'Refused', unit: 'reqps' },
        queries: [
          [rate('remora_gateway_refused_total', 'reason'), '{{reason}}'],
          [rate('remora_gateway_malformed_total', 'door'), 'malformed {{door}}'],
        ],
      },
      { title: 'In progress', queries: [[`sum by (what) (${of('remora_in_flight')})`, '{{what}}']] },
    ],
  },
  {
    title: 'Locks',
    panels: [
      {
        ...{ title: 'Grants', unit: 'ops' },
        queries: [[rate('remora_lock_grants_total', 'kind, waited'), '{{kind}}, waited: {{waited}}']],
      },
      time('Waits for locks', 'remora_lock_wait_seconds', 'kind', 'Time in the queue until the grant.'),
      time('How long locks are held', 'remora_lock_hold_seconds', 'kind', 'From the grant to its end.'),
      { ...{ title: 'Ends', unit: 'ops' }, queries: [[rate('remora_lock_ends_total', 'how'), '{{how}}']] },
      {
        title: 'Waiters',
        queries: [[`sum(${of('remora_in_flight', 'what="lockCalls"')})`, 'waiting']],
      },
      {
        title: 'Sessions',
        queries: [
          [`sum(${of('remora_sessions')})`, 'open'],
          [rate('remora_sessions_total', 'event'), '{{event}} per second'],
        ],
      },
    ],
  },
  {
    title: 'Replication',
    panels: [
      time('Commit', 'remora_commit_seconds', '', 'From the proposal of an entry until a quorum has it.'),
      time('Apply', 'remora_apply_seconds', '', 'Time to apply an entry.'),
      time('Synced writes to the log', 'remora_log_sync_seconds', 'instance', 'Every write waits for these.'),
      time('Appends to the log', 'remora_log_append_seconds', 'instance', 'With the wait for the write before.'),
      time('Round trips', 'remora_peer_round_trip_seconds', 'peer', 'From a heartbeat to a node until its reply.'),
      time('Waits for revisions', 'remora_revision_wait_seconds', '', 'Until the masters have numbered commands.'),
      {
        title: 'Changes of leaders',
        queries: [[`sum by (instance) (increase(${of('remora_leader_changes_total')}[5m]))`, '{{instance}}']],
      },
      {
        title: 'Ranges led',
        queries: [
          [`sum by (instance) (${of('remora_range_leader')})`, '{{instance}}'],
          [`sum(${of('remora_leaderless_replicas')})`, 'replicas that know no leader'],
        ],
      },
    ],
  },
  {
    title: 'Storage',
    panels: [
      { ...{ title: 'Free disk', unit: 'bytes' }, queries: [[of('remora_disk_available_bytes'), '{{instance}}']] },
      { ...{ title: 'Write-ahead log', unit: 'bytes' }, queries: [[of('remora_log_bytes'), '{{instance}}']] },
      {
        ...{ title: 'Changes since the last checkpoint', unit: 'bytes' },
        queries: [[of('remora_engine_pending_bytes'), '{{instance}}']],
      },
      {
        ...{ title: 'Keys and values', unit: 'bytes' },
        queries: [[`sum(max by (range) (${of('remora_range_bytes')}))`, 'bytes']],
      },
      { title: 'Keys', queries: [[`sum(max by (range) (${of('remora_range_keys')}))`, 'keys']] },
    ],
  },
  {
    title: 'Processes',
    panels: [
      {
        ...{ title: 'CPU', unit: 'percentunit' },
        queries: [[rate('process_cpu_seconds_total', 'instance'), '{{instance}}']],
      },
      { ...{ title: 'Memory', unit: 'bytes' }, queries: [[of('process_resident_memory_bytes'), '{{instance}}']] },
      {
        ...{ title: 'Delay of the event loop', unit: 's' },
        queries: [[of('nodejs_eventloop_lag_p99_seconds'), '{{instance}}']],
      },
      {
        ...{
          title: 'Long sections',
          unit: 'percentunit',
          description: 'The share of time in which they hold the event loop.',
        },
        queries: [[rate('remora_loop_section_seconds_sum', 'section'), '{{section}}']],
      },
      { title: 'Connections', queries: [[`sum by (port) (${of('remora_port_connections')})`, '{{port}}']] },
      {
        ...{ title: 'Certificates', unit: 'd', description: 'Days until they expire.' },
        queries: [[`min by (purpose) (${of('remora_tls_certificate_expiry_days')})`, '{{purpose}}']],
      },
    ],
  },
];

const COLUMNS = 24;
const HEIGHT = 8;
// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const SOURCE = { type: 'prometheus', uid: '${datasource}' };

export function dashboardFile(): string {
  let y = 0;
  let id = 0;
  const panels = ROWS.flatMap(({ title, panels }) => {
    const head = {
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y: y++, w: COLUMNS, h: 1 },
      panels: [],
    };
    const width = COLUMNS / 3;
    const placed = panels.map((panel, i) => {
      const gridPos = { x: (i % 3) * width, y: y + Math.floor(i / 3) * HEIGHT, w: width, h: HEIGHT };
      return panelJson(panel, ++id, gridPos);
    });
    y += Math.ceil(panels.length / 3) * HEIGHT;
    return [head, ...placed];
  });
  const dashboard = {
    ...{ uid: 'remora', title: 'Remora', tags: ['remora'], schemaVersion: 39, version: 1, editable: true },
    ...{ refresh: '30s', time: { from: 'now-1h', to: 'now' }, timezone: 'browser' },
    templating: { list: variables() },
    panels,
  };
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}

function panelJson({ title, description = '', type, unit = 'short', queries }: Panel, id: number, gridPos: object) {
  return {
    ...{ id, title, description, type: type ?? 'timeseries', gridPos, datasource: SOURCE },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: type === undefined ? { legend: { displayMode: 'list', placement: 'bottom', showLegend: true } } : {},
    targets: queries.map(([expr, legendFormat], i) => ({
      ...{ refId: String.fromCharCode(65 + i), expr, legendFormat, datasource: SOURCE },
      ...(type !== undefined && { instant: true, ...(type === 'table' && { format: 'table' }) }),
    })),
  };
}

function variables() {
  const chosen = (name: string, query: string) => ({
    ...{ name, type: 'query', datasource: SOURCE, query: { query, refId: name }, refresh: 2, sort: 1 },
    ...{ multi: true, includeAll: true, current: { text: 'All', value: '$__all' } },
  });
  return [
    { name: 'datasource', type: 'datasource', query: 'prometheus', current: {} },
    chosen('job', 'label_values(remora_build_info, job)'),
    chosen('instance', 'label_values(remora_build_info{job=~"$job"}, instance)'),
  ];
}
