import type { Judged } from '../report.ts';
import { type AttackReport, UNFINISHED_BYTES_MAX } from './attack.ts';

const MIB = 1 << 20;
/** Of the port for nodes, strangers have this at most: 200 with a frame of 64 KiB, and 1,000 with a hello. */
const PEER_BYTES_MAX = 1_200 * (64 << 10);
/** Bodies of HTTP: eight of the largest. */
const HTTP_BYTES_MAX = 32 * MIB;
/** Of a connection, besides its unfinished input: buffers of Node, and state of streams and HPACK. */
const CONNECTION_BYTES = 192 << 10;
/** What the clients' calls and the heap of a busy process take, and what is freed but not returned. */
const SLACK_BYTES = 192 * MIB;
const HEALTH_MS_MAX = 1_000;

const LIMITS: Readonly<Record<string, number>> = {
  client: UNFINISHED_BYTES_MAX,
  peer: PEER_BYTES_MAX,
  http: HTTP_BYTES_MAX,
};

/** What is promised, whatever the machine. */
export function judgeFunction(report: AttackReport): readonly Judged[] {
  const { bystanders, health, kinds, options } = report;
  const idle = kinds.filter(({ opened }) => opened === 0);
  const failures = bystanders.doors.flatMap(({ door, failures: each }) => each.map((failure) => `${door}: ${failure}`));
  return [
    {
      what: 'input of every kind was begun',
      found: `${kinds.reduce((sum, { opened }) => sum + opened, 0)} connections; none of ${idle.map(({ kind }) => kind).join(', ') || '-'}`,
      holds: idle.length === 0,
    },
    ...Object.entries(LIMITS).map(([port, max]) => {
      const most = Math.max(...report.during.map(({ unfinishedBytes }) => unfinishedBytes[port] ?? Number.NaN));
      const found = `${mib(most)} of ${mib(max)} MiB`;
      return { what: `unfinished input at the ${port} port stays within its budget`, found, holds: most <= max };
    }),
    memory(report),
    {
      what: 'clients that have a connection go on, through every door',
      found: `${bystanders.doors.map(({ door, calls }) => `${door} ${calls}`).join(', ')}; failed: ${failures[0] ?? '-'}`,
      holds: failures.length === 0 && bystanders.doors.every(({ calls }) => calls > 0),
    },
    {
      what: 'a lock that was held before is held after',
      found: bystanders.isLockHeld ? 'held' : 'lost',
      holds: bystanders.isLockHeld,
    },
    {
      what: 'health is answered all the time',
      found: `${health.probes} probes in ${options.seconds} s; failed: ${health.failures[0] ?? '-'}`,
      holds: health.failures.length === 0 && health.probes > 0,
    },
  ];
}

/** What is promised on a machine that is otherwise idle. */
export function judgeSpeed({ health, bystanders, during }: AttackReport): readonly Judged[] {
  const waits = bystanders.doors.map(({ door, longestMs }) => `${door} ${longestMs.toFixed(0)} ms`).join(', ');
  const turnMs = Math.max(...during.map((sample) => sample.turnMs));
  return [
    {
      what: 'health is answered within a second',
      found: `longest ${health.longestMs.toFixed(0)} ms (turn of the node ${turnMs.toFixed(0)} ms; calls of clients: ${waits})`,
      holds: health.longestMs <= HEALTH_MS_MAX,
    },
  ];
}

function memory({ before, during, options }: AttackReport): Judged {
  const most = Math.max(...during.map(({ residentBytes }) => residentBytes)) - before.residentBytes;
  const budgets = Object.values(LIMITS).reduce((sum, each) => sum + each, 0);
  const max = budgets + options.connections * CONNECTION_BYTES + SLACK_BYTES;
  return {
    what: 'memory grows by no more than the budgets, and a bounded part for each connection',
    found: `${mib(most)} of ${mib(max)} MiB`,
    holds: most <= max,
  };
}

const mib = (bytes: number): string => (bytes / MIB).toFixed(1);
