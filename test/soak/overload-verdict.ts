import type { OverloadReport } from './overload.ts';
import { type Tally, WINDOW_MS, type Window } from './raw-load.ts';
import type { Judged } from './report.ts';

/** The fraction of the limit that must be answered, in addition to refusals. */
const GOODPUT_MIN = 0.8;
/** If the load could not be offered, the run shows nothing. */
const OFFERED_MIN = 0.9;
/** A burst at the beginning, and additional requests of sessions. */
const ADMITTED_MAX = 1.1;
/** Requests without an answer, for example because of an election. */
const UNANSWERED_MAX = 0.001;
/** How requests without an answer in time end, by either API. */
const NO_ANSWER: readonly string[] = ['UNKNOWN_OUTCOME', 'DEADLINE_EXCEEDED', 'gRPC 4'];
const RECOVERY_MS_MAX = 5_000;
/** After this many windows without a bad one, the cluster has recovered. */
const CALM_WINDOWS = 4;
/** By which factor a latency may exceed the earlier one and still count as the same. */
const LATENCY_TIMES = 2;
const LATENCY_SLACK_MS = 20;

/** What is promised of an overloaded cluster, whatever the machine. */
export function judgeFunction(report: OverloadReport): readonly Judged[] {
  const { load, holders, applied, gateway } = report;
  const tallies = Object.values(load.phases);
  const acknowledged = sum(tallies.map(({ ok }) => ok));
  const unsure = sum(tallies.map(unanswered));
  const { during } = load.phases;
  return [
    {
      what: 'what is above the limit is refused with RESOURCE_EXHAUSTED',
      found: `of ${during.offered}, ${during.ok} succeeded, ${JSON.stringify(during.codes)}`,
      holds: refused(during) > 0 && tallies.every(onlyRefused),
    },
    {
      what: 'the gateway counts what it refuses',
      found: `${gateway.refused} refused, ${gateway.admitted} let in`,
      holds: gateway.refused >= sum(tallies.map(refused)) && gateway.admitted >= acknowledged,
    },
    {
      what: 'what was refused changed nothing, what was acknowledged is there',
      found: `${applied} puts applied, ${acknowledged} acknowledged, ${unsure} of unknown outcome`,
      holds: applied >= acknowledged && applied <= acknowledged + unsure,
    },
    {
      what: 'no session that heartbeats expires, and no lock of it is lost',
      found: `${holders.lost.length} lost${holders.lost.length === 0 ? '' : `: ${holders.lost[0]}`}, ${holders.stillHeld} of ${holders.sessions} locks still held`,
      holds: holders.lost.length === 0 && holders.stillHeld === holders.sessions,
    },
    {
      what: 'locks go round all the time',
      found: `${holders.turns} turns, failed: ${JSON.stringify(holders.codes)}`,
      holds: holders.turns > 0,
    },
  ];
}

/** The promises about its speed, on a machine that is otherwise idle. */
export function judgeSpeed(report: OverloadReport): readonly Judged[] {
  const { limit, times, seconds } = report.options;
  const { before, during, after } = report.load.phases;
  const perSecond = (count: number): number => Math.round(count / seconds);
  const recoveryMs = recoveredAfterMs(before, afterWindows(report));
  return [
    {
      what: `${times} times the limit was offered`,
      found: `${perSecond(during.offered)} requests per second`,
      holds: during.offered >= OFFERED_MIN * limit * times * seconds,
    },
    {
      what: 'answers come in time',
      found: `${unanswered(during)} of ${during.offered} had none`,
      holds: unanswered(during) <= UNANSWERED_MAX * during.offered,
    },
    {
      what: `goodput is at least ${GOODPUT_MIN * 100} % of the limit`,
      found: `${perSecond(during.ok)} per second of ${limit}`,
      holds: during.ok >= GOODPUT_MIN * limit * seconds,
    },
    {
      what: 'the limit holds',
      found: `${perSecond(during.ok)} per second of ${limit}`,
      holds: during.ok <= ADMITTED_MAX * limit * (seconds + 1),
    },
    {
      what: `latency is back to what it was within ${RECOVERY_MS_MAX / 1_000} s`,
      found: `${recoveryMs === undefined ? 'never' : `after ${recoveryMs / 1_000} s`}; p99 before ${ms(before.p99Ms)}, during ${ms(during.p99Ms)}, after ${ms(after.p99Ms)}`,
      holds: recoveryMs !== undefined && recoveryMs <= RECOVERY_MS_MAX,
    },
  ];
}

/**
 * The time from the end of the overload to the first of several windows in a row without errors and with a latency as
 * before. Undefined if there is none. `windows` are those after the overload.
 */
export function recoveredAfterMs(before: Pick<Tally, 'p99Ms'>, windows: readonly Window[]): number | undefined {
  const allowedMs = Math.max(LATENCY_TIMES * before.p99Ms, before.p99Ms + LATENCY_SLACK_MS);
  let calm = 0;
  for (const { ok, codes, p99Ms, atMs } of windows) {
    calm = ok > 0 && Object.keys(codes).length === 0 && p99Ms <= allowedMs ? calm + 1 : 0;
    if (calm === CALM_WINDOWS) return atMs - (CALM_WINDOWS - 1) * WINDOW_MS;
  }
  return undefined;
}

function afterWindows({ load }: OverloadReport): readonly Window[] {
  return load.windows.filter(({ phase }) => phase === 'after');
}

function refused({ codes }: Tally): number {
  return codes.RESOURCE_EXHAUSTED ?? 0;
}

/** Afterwards a put may or may not have been applied. */
function unanswered(tally: Tally): number {
  return tally.offered - tally.ok - refused(tally);
}

function onlyRefused({ codes }: Tally): boolean {
  return Object.keys(codes).every((code) => code === 'RESOURCE_EXHAUSTED' || NO_ANSWER.includes(code));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}
