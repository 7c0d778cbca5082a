/** Results as data and as tables, with the bars that the project sets itself. Nothing is asserted here. */

import { median } from '../test/support/quantile.ts';
import type { Case } from './bench-options.ts';
import type { IdleResult, RunResult } from './measure.ts';
import type { Role, Workload } from './system.ts';

/** Runs of one workload against one system at one level. */
export interface LoadReport {
  readonly case: Workload;
  readonly inflight: number;
  readonly system: string;
  readonly runs: readonly RunResult[];
}

export interface OutageReport {
  readonly system: string;
  readonly outagesMs: readonly number[];
}

export interface IdleReport {
  readonly system: string;
  readonly runs: readonly IdleResult[];
}

export interface Report {
  readonly loads: readonly LoadReport[];
  readonly outages: readonly OutageReport[];
  readonly idle: readonly IdleReport[];
}

interface Bar {
  readonly text: string;
  readonly case: Case;
  /** Undefined: not measured. */
  readonly value: (report: Report) => number | undefined;
  readonly holds: (value: number) => boolean;
  readonly unit: string;
}

const SUBJECT = 'remora';

const BARS: readonly Bar[] = [
  {
    text: 'acquire + release, 64 in flight: at least 3 times etcd',
    case: 'lock',
    value: (report) => ratio(report, { case: 'lock', inflight: 64, to: 'etcd' }),
    holds: (value) => value >= 3,
    unit: '×',
  },
  {
    text: 'acquire + release, 64 in flight: at least a quarter of the bare pipeline',
    case: 'lock',
    value: (report) => ratio(report, { case: 'lock', inflight: 64, to: 'bare' }),
    holds: (value) => value >= 0.25,
    unit: '×',
  },
  {
    text: 'unary put, 64 in flight: at least half of etcd',
    case: 'unary-put',
    value: (report) => ratio(report, { case: 'unary-put', inflight: 64, to: 'etcd' }),
    holds: (value) => value >= 0.5,
    unit: '×',
  },
  ...(['put', 'unary-put', 'unary-get'] as const).map(
    (workload): Bar => ({
      text: `${workload}, one in flight: at least 0.9 of etcd`,
      case: workload,
      value: (report) => ratio(report, { case: workload, inflight: 1, to: 'etcd' }),
      holds: (value) => value >= 0.9,
      unit: '×',
    }),
  ),
  {
    text: 'outage after kill -9 of the leader, median: at most 400 ms',
    case: 'outage',
    value: ({ outages }) => {
      const found = outages.find(({ system }) => system === SUBJECT);
      return found === undefined ? undefined : median(found.outagesMs);
    },
    holds: (value) => value <= 400,
    unit: ' ms',
  },
  {
    text: 'handing a lock over on release, p50: under 10 ms',
    case: 'handoff',
    value: ({ loads }) => {
      const found = loads.find((load) => load.case === 'handoff' && load.system === SUBJECT);
      return found === undefined ? undefined : summaryOf(found).p50Ms;
    },
    holds: (value) => value < 10,
    unit: ' ms',
  },
  {
    text: "three idle nodes: at most 1.2 times etcd's CPU time",
    case: 'idle',
    value: idleRatio,
    holds: (value) => value <= 1.2,
    unit: '×',
  },
  {
    text: 'an idle cluster: under 450 MB PSS',
    case: 'idle',
    value: (report) => megabytes(medianIdle(report, SUBJECT)?.pssBytes),
    holds: (value) => value < 450,
    unit: ' MB',
  },
];

export interface Summary {
  readonly opsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly errors: number;
  readonly cpuMicrosPerOp: readonly { readonly role: Role; readonly micros: number }[];
}

/** The median of each figure; errors add up. */
export function summaryOf({ runs }: LoadReport): Summary {
  const roles: readonly Role[] = ['client', 'leader', 'entry', 'follower'];
  const cpuMicrosPerOp = roles.flatMap((role) => {
    const perRun = runs.map(({ processes }) => meanOf(processes.filter((each) => each.role === role)));
    const known = perRun.filter((micros) => micros !== undefined);
    return known.length === 0 ? [] : [{ role, micros: median(known) }];
  });
  return {
    opsPerSecond: median(runs.map(({ opsPerSecond }) => opsPerSecond)),
    p50Ms: median(runs.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(runs.map(({ p99Ms }) => p99Ms)),
    errors: runs.reduce((sum, { errors }) => sum + errors, 0),
    cpuMicrosPerOp,
  };
}

export function render(report: Report): string {
  return [loadTable(report), outageTable(report), idleTable(report), barList(report)]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** The bars for which there are figures. */
export function bars(
  report: Report,
): readonly { readonly text: string; readonly value: number; readonly met: boolean }[] {
  return BARS.flatMap(({ text, value, holds }) => {
    const measured = value(report);
    return measured === undefined ? [] : [{ text, value: measured, met: holds(measured) }];
  });
}

function loadTable(report: Report): string {
  const others = [...new Set(report.loads.map(({ system }) => system))].filter((name) => name !== SUBJECT);
  const head = ['case', 'in flight', 'system', 'ops/s', 'p50 ms', 'p99 ms', ...others.map((name) => `vs ${name}`)];
  const rows = report.loads.map((load) => {
    const { opsPerSecond, p50Ms, p99Ms, errors, cpuMicrosPerOp } = summaryOf(load);
    const ratios = others.map((to) => {
      const value = load.system === SUBJECT ? ratio(report, { ...load, to }) : undefined;
      return value === undefined ? '' : value.toFixed(2);
    });
    const cpu = cpuMicrosPerOp.map(({ role, micros }) => `${role} ${micros.toFixed(1)}`).join('  ');
    const failures = errors === 0 ? '' : `  ${errors} errors: ${load.runs.find((run) => run.firstError)?.firstError}`;
    const figures = [opsPerSecond.toFixed(0), p50Ms.toFixed(2), p99Ms.toFixed(2)];
    return [load.case, String(load.inflight), load.system, ...figures, ...ratios, cpu + failures];
  });
  return rows.length === 0 ? '' : table([...head, 'CPU µs per op'], rows);
}

function outageTable({ outages }: Report): string {
  const rows = outages.map(({ system, outagesMs }) => [
    system,
    median(outagesMs).toFixed(0),
    Math.max(...outagesMs).toFixed(0),
    [...outagesMs]
      .sort((a, b) => a - b)
      .map((ms) => ms.toFixed(0))
      .join(' '),
  ]);
  return rows.length === 0 ? '' : table(['outage', 'median ms', 'worst ms', 'all'], rows);
}

function idleTable({ idle }: Report): string {
  const rows = idle.map(({ system, runs }) => {
    const percents = runs.map(({ cpuPercent }) => cpuPercent);
    const figures = [median(percents), Math.min(...percents), Math.max(...percents)].map((value) => value.toFixed(1));
    return [system, ...figures, (megabytes(median(runs.map(({ pssBytes }) => pssBytes))) ?? 0).toFixed(0)];
  });
  return rows.length === 0 ? '' : table(['idle', '% of a core', 'least', 'most', 'PSS MB'], rows);
}

function barList(report: Report): string {
  const lines = BARS.flatMap(({ text, value, holds, unit }) => {
    const measured = value(report);
    if (measured === undefined) return [];
    return [`${holds(measured) ? 'met   ' : 'missed'}  ${text} (${measured.toPrecision(3)}${unit})`];
  });
  return lines.join('\n');
}

function ratio(report: Report, at: { readonly case: Workload; readonly inflight: number; readonly to: string }) {
  const find = (name: string): LoadReport | undefined =>
    report.loads.find((load) => load.case === at.case && load.inflight === at.inflight && load.system === name);
  const [subject, other] = [find(SUBJECT), find(at.to)];
  if (subject === undefined || other === undefined) return undefined;
  const [own, theirs] = [summaryOf(subject), summaryOf(other)];
  // What is handed over one at a time is a matter of latency.
  return at.case === 'handoff' ? theirs.p50Ms / own.p50Ms : own.opsPerSecond / theirs.opsPerSecond;
}

function medianIdle({ idle }: Report, name: string): IdleResult | undefined {
  const runs = idle.find(({ system }) => system === name)?.runs;
  if (runs === undefined) return undefined;
  return {
    cpuPercent: median(runs.map(({ cpuPercent }) => cpuPercent)),
    pssBytes: median(runs.map(({ pssBytes }) => pssBytes)),
  };
}

function idleRatio(report: Report): number | undefined {
  const [own, theirs] = [medianIdle(report, SUBJECT), medianIdle(report, 'etcd')];
  return own === undefined || theirs === undefined ? undefined : own.cpuPercent / theirs.cpuPercent;
}

function meanOf(processes: RunResult['processes']): number | undefined {
  if (processes.length === 0) return undefined;
  return processes.reduce((sum, { cpuMicrosPerOp }) => sum + cpuMicrosPerOp, 0) / processes.length;
}

function megabytes(bytes: number | undefined): number | undefined {
  return bytes === undefined ? undefined : bytes / 2 ** 20;
}

/** Columns, all but the first and last aligned to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) =>
        i === 0 || i === cells.length - 1 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [head, ...rows].map(line).join('\n');
}
