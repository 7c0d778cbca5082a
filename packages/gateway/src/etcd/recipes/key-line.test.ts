import { ServiceError, silentLogger, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { Command } from '@remora/protocol';
import { expect, test } from 'vitest';
import { Admission } from '../../admission/admission.ts';
import { AdmittedBackend } from '../../admission/admitted-backend.ts';
import type { Backend } from '../../backend.ts';
import { Headers } from '../headers.ts';
import { ETCD_LIMITS } from '../limits.ts';
import { BackendCalls } from './backend-calls.ts';
import { KeyLine } from './key-line.ts';

const PLACE = { key: utf8('l/1'), modRevision: 7 };
const HOUR_MS = 3_600_000;

/** A line in a cluster that refuses each command for some time. */
class Bed {
  readonly clock = new ManualClock();
  readonly line: KeyLine;
  /** When it was asked for what. */
  readonly asked: { readonly atMs: number; readonly command: Command }[] = [];
  left = false;
  stopped = false;

  constructor(fullMs: number, before = (backend: Backend): Backend => backend) {
    const { clock } = this;
    const behind: Pick<Backend, 'command' | 'view' | 'nodeId'> = {
      nodeId: 1,
      view: () => ({ clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 0 }),
      command: (command, _options, done) => {
        this.asked.push({ atMs: clock.monotonicMs(), command });
        if (clock.monotonicMs() < fullMs) done(new ServiceError('RESOURCE_EXHAUSTED', 'too many requests'), undefined);
        else done(undefined, { result: { type: 'txn', succeeded: true, results: [] }, revision: 9, raftTerm: 1 });
        return () => {};
      },
    };
    const backend = before(behind as Backend);
    const calls = new BackendCalls(backend, new Headers(backend), ETCD_LIMITS, undefined);
    this.line = new KeyLine(calls, clock, () => this.stopped);
  }

  leave(): void {
    void this.line.leave(PLACE).then(() => {
      this.left = true;
    });
  }

  async pass(ms: number): Promise<void> {
    const untilMs = this.clock.monotonicMs() + ms;
    await settled();
    for (let due = this.clock.nextTimerMs(); due !== undefined && due <= untilMs; due = this.clock.nextTimerMs()) {
      this.clock.fireNext();
      await settled();
    }
    this.clock.advance(untilMs - this.clock.monotonicMs());
  }
}

/** What was promised has happened. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test('who leaves is taken out of the line as soon as the cluster takes that, however long it has not (K4)', async () => {
  const bed = new Bed(HOUR_MS);
  bed.leave();
  await bed.pass(HOUR_MS - 1);
  expect(bed.left).toBe(false);
  const pausesMs = bed.asked.slice(1).map(({ atMs }, i) => atMs - (bed.asked[i]?.atMs ?? 0));
  expect(pausesMs.slice(0, 8)).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  await bed.pass(5_000);
  expect(bed.left).toBe(true);
  expect(bed.clock.pendingTimers).toBe(0);
});

test('it is let in where the gateway refuses what is new', async () => {
  const clock = new ManualClock();
  const admission = new Admission({ clock, logger: silentLogger }, { requestsPerSecondMax: 1 });
  while (admission.admit('ordinary') === undefined);
  const bed = new Bed(0, (behind) => new AdmittedBackend(behind, admission));
  bed.leave();
  await bed.pass(0);
  expect([bed.left, bed.asked.length]).toEqual([true, 1]);
});

test('nobody is taken out of the line any more when the gateway has stopped', async () => {
  const bed = new Bed(HOUR_MS);
  bed.leave();
  await bed.pass(60_000);
  bed.stopped = true;
  const before = bed.asked.length;
  await bed.pass(5_000);
  expect([bed.left, bed.asked.length, bed.clock.pendingTimers]).toEqual([true, before, 0]);
});
