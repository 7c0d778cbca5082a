/** The promises for nodes that join, leave and die. */
import type { Judged } from '../report.ts';
import type { ChangeReport } from './change.ts';
import { isEven, spreadText } from './cluster-view.ts';
import type { DeathReport } from './death.ts';
import type { PhaseResult } from './open-load.ts';
import type { RestartReport } from './restart.ts';
import type { LoadReport } from './stage.ts';

export function judgeDeath(report: DeathReport): readonly Judged[] {
  const { victim, downAfterMs, repairMs, wholeMs, balancedMs, spread, load } = report;
  const allowedMs = downAfterMs + repairMs;
  const kind = victim === 'master' ? 'with a voter of the masters' : 'that is no master';
  return [
    {
      what: `a node ${kind} is killed: every range has three live replicas again in ${seconds(allowedMs)}`,
      found: `after ${seconds(wholeMs)}`,
      holds: wholeMs <= allowedMs,
    },
    {
      what: 'within the same time leaders and replicas are balanced',
      found: `after ${seconds(balancedMs)}: ${spreadText(spread)}`,
      holds: balancedMs <= allowedMs && isEven(spread.replicas) && isEven(spread.leaders),
    },
    judgeLoad(load),
  ];
}

export function judgeChange({ joined, left, load }: ChangeReport): readonly Judged[] {
  return [
    {
      what: 'a node that joins receives its share',
      found: `after ${seconds(joined.balancedMs)}: ${joined.replicas} replicas, ${joined.leaders} leaders; ${spreadText(joined.spread)}`,
      holds:
        joined.replicas > 0 && joined.leaders > 0 && isEven(joined.spread.replicas) && isEven(joined.spread.leaders),
    },
    {
      what: 'a node that is decommissioned ends empty',
      found: `after ${seconds(left.emptyMs)}: ${left.replicas} replicas, ${left.leaders} leaders; the others: ${spreadText(left.spread)}`,
      holds: left.replicas === 0 && left.leaders === 0,
    },
    judgeLoad(load),
  ];
}

export function judgeRestart({ nodes, load }: RestartReport): readonly Judged[] {
  const maintained = nodes.filter((node) => node.maintained);
  const told = nodes.filter((node) => !node.maintained);
  return [
    {
      what: 'a node in maintenance leads nothing when it is stopped',
      found: maintained.map(({ name, led }) => `${name} led ${led}`).join(', '),
      holds: maintained.every(({ led }) => led === 0),
    },
    {
      what: 'a node that is told to stop ends well',
      found: nodes
        .map(({ name, led, stoppedMs, exitCode }) => `${name} (leader of ${led}) ${seconds(stoppedMs)}, ${exitCode}`)
        .join('; '),
      holds: nodes.every(({ exitCode }) => exitCode === 0) && told.some(({ led }) => led > 0),
    },
    judgeLoad(load),
  ];
}

/** Whatever happens to nodes, requests succeed, and clients keep what they hold. */
export function judgeLoad({ phases, failed, failures, lost }: LoadReport): Judged {
  const offered = phases.reduce((sum, phase) => sum + phase.offered, 0);
  const [failure] = failures;
  const first = failure === undefined ? '' : `; the first, a ${failure.kind} of ${failure.dueAt}: ${failure.error}`;
  return {
    what: 'no request of a client fails, and no session, lock or watch is lost',
    found: `of ${offered} requests ${failed} failed${first}${lost.length === 0 ? '' : `; lost: ${lost.join('; ')}`}`,
    holds: offered > 0 && failed === 0 && lost.length === 0,
  };
}

/** Latencies per phase, of all requests and of each kind. */
export function phaseLines({ phases }: LoadReport): readonly string[] {
  return phases.flatMap((phase) => [phaseLine(phase), ...slowLines(phase)]);
}

function phaseLine({ phase, seconds: length, offered, all, kinds }: PhaseResult): string {
  const each = Object.entries(kinds).map(([kind, { p99Ms }]) => `${kind} ${ms(p99Ms)}`);
  const head = `${phase} (${length.toFixed(0)} s, ${offered} requests)`;
  return `${head}: p50 ${ms(all.p50Ms)}, p99 ${ms(all.p99Ms)}, longest ${ms(all.longestMs)}; p99 by kind: ${each.join(', ')}`;
}

function slowLines({ slowest }: PhaseResult): readonly string[] {
  return [`    slowest: ${slowest.map(({ kind, dueAt, ms: took }) => `${kind} ${took} ms at ${dueAt}`).join(', ')}`];
}

function seconds(value: number): string {
  return `${(value / 1_000).toFixed(1)} s`;
}

function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}
