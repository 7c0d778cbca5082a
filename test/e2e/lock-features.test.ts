/**
 * What locks can do, through gateways of a real cluster, while its leader is killed: once when they are held, and once
 * when somebody waits. All courses run side by side, so that two changes of leader do for all of them.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { connect } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Cluster } from './harness.ts';
import { BARRIERS } from './lock-features/barriers.ts';
import { type Course, type Courses, unique } from './lock-features/course.ts';
import { ELECTIONS } from './lock-features/elections.ts';
import { ENDS } from './lock-features/ends.ts';
import { EVENTS } from './lock-features/events.ts';
import { KINDS } from './lock-features/kinds.ts';
import { LEASES } from './lock-features/leases.ts';
import { LEAVES } from './lock-features/leaves.ts';
import { OVER_HTTP } from './lock-features/over-http.ts';
import { SESSIONS } from './lock-features/sessions.ts';
import { TOGETHER } from './lock-features/together.ts';
import { WAITING } from './lock-features/waiting.ts';
import { WAYS } from './lock-features/ways.ts';

const COURSES: Courses = {
  ...KINDS,
  ...WAITING,
  ...SESSIONS,
  ...ENDS,
  ...LEASES,
  ...LEAVES,
  ...EVENTS,
  ...ELECTIONS,
  ...BARRIERS,
  ...TOGETHER,
  ...OVER_HTTP,
  ...WAYS,
};
const EXAMPLES_DIR = fileURLToPath(new URL('../../examples', import.meta.url));
/** Those that neither need a cluster of their own nor are mostly about the time that sessions live. */
const EXAMPLES = ['delayed-write', 'deleting-anothers-lock', 'ghost-waiter', 'herd', 'overselling'];
const PARTS = ['held', 'waiting', 'over'] as const;
/** Of one course: so that one that comes to nothing does not take the others with it. */
const PART_MS = 90_000;

let cluster: Cluster;
const failures = new Map<string, unknown>();

beforeAll(async () => {
  cluster = await Cluster.start();
  const { endpoints } = cluster;
  const http = cluster.nodes.map((node) => node.http);
  const client = await connect({ endpoints, requestTimeout: '30s' });
  const other = await connect({ endpoints: [...endpoints].reverse(), requestTimeout: '30s' });
  const running = new Map(
    Object.entries(COURSES).map(([feature, course]: [string, Course]) => {
      return [feature, course({ client, other, endpoints, http, name: unique(feature) })];
    }),
  );
  for (const part of PARTS) {
    await Promise.all(
      [...running].map(async ([feature, course]) => {
        try {
          const { done, value } = await within(part, course.next());
          expect(done === true ? 'over' : value, 'the part that the course has come to').toBe(part);
        } catch (error) {
          failures.set(feature, error);
          running.delete(feature);
        }
      }),
    );
    if (part !== 'over') await killLeader();
  }
  await Promise.all([client.close(), other.close()]);
});
afterAll(() => cluster?.stop());

async function within<T>(part: string, done: Promise<T>): Promise<T> {
  const controller = new AbortController();
  const over = pause(PART_MS, undefined, { signal: controller.signal }).then(() => {
    throw new Error(`the course has not come to '${part}' within ${PART_MS} ms`);
  });
  return Promise.race([done, over]).finally(() => controller.abort());
}

async function killLeader(): Promise<void> {
  const leader = await cluster.leader();
  cluster.kill(leader, 'SIGKILL');
  await cluster.restart(leader);
}

test.each(Object.keys(COURSES))('%s', (feature) => {
  if (failures.has(feature)) throw failures.get(feature);
});

test.concurrent.each(EXAMPLES)('what the example %s says of Remora holds', async (name) => {
  const args = [join(EXAMPLES_DIR, `${name}.mjs`), '--only-remora', '--endpoints', cluster.endpoints.join(',')];
  await promisify(execFile)(process.execPath, args);
});
