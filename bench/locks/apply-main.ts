/**
 * The process of the case `apply`: makes log entries as a leader would, some at a time, and takes the CPU time that a
 * range needs for them. The packages are those of the tree that is measured, whichever tree this file is of.
 */
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { nodeClock, silentLogger } from '@remora/base';
import type { LockCommand } from '@remora/lock';
import type { BatchedCommand } from '@remora/protocol';
import type { ApplyArguments, ApplyReport } from './cases/apply.ts';

const args: ApplyArguments = JSON.parse(process.argv[2] ?? '{}');
const [dataserver, protocol] = (await Promise.all(
  ['dataserver', 'protocol'].map((name) => import(join(args.tree, `packages/${name}/dist/index.js`))),
)) as [typeof import('@remora/dataserver'), typeof import('@remora/protocol')];

const RANGE = { rangeId: 2, start: Buffer.of(), end: Buffer.of(), epoch: { confVersion: 1, version: 1 } } as const;
const CONF = { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
/** As many leases as there are clients. */
const CLIENTS = 4;
/** How long an outcome is remembered, in range time, which passes as fast as `remembered` asks for. */
const KEPT_MS = 10_000;
/** As a node's default. */
const CHECKPOINT_BYTES = 16 * 2 ** 20;
/** Made before the time is taken. */
const PAIRS_AT_ONCE = 10_240;

const engine = await dataserver.openLevelEngine({
  dir: args.dir,
  options: { resident: dataserver.RESIDENT_SPANS },
  clock: nodeClock(),
  logger: silentLogger,
  onFailure: fail,
});
const state = new dataserver.RangeState(engine, {
  descriptor: { ...RANGE, replicas: [{ replicaId: 1, nodeId: 1, type: 'voter' }], revisionSource: 'range' },
  conf: CONF,
  effects: {
    onEvents() {},
    onNotice() {},
    onHoldDelayed() {},
    onLeaseGranted() {},
    onLeaseEnded() {},
    onSplit() {},
    onSealed() {},
    onMerged() {},
    source: () => fail(new Error('no range is merged here')),
  },
});
engine.onCheckpoint(() => state.stage());

let requests = 0;
let cycles = 0;
let granted = 0;
let timeMs = 1_000;

function fail(error: Error): never {
  throw error;
}

function entryOf(commands: readonly BatchedCommand['command'][]): Buffer {
  timeMs += (KEPT_MS * commands.length) / args.remembered;
  const deadlineMs = timeMs + KEPT_MS;
  return protocol.encodeEntry({
    rangeTimeMs: timeMs,
    wallMs: 1_700_000_000_000 + timeMs,
    epoch: RANGE.epoch,
    commands: commands.map((command) => ({
      command,
      requestId: `0c2a7f1e-5d0b-4a53-9d3e-1f6b7f0c9a11.${(requests++).toString(36)}`,
      deadlineMs,
    })),
  });
}

function lease(client: number): BatchedCommand['command'] {
  return { type: 'leaseGrant', id: BigInt(1 + client), ttlMs: 60_000, attributes: {} };
}

function pair(n: number): readonly [LockCommand, LockCommand] {
  const client = n % CLIENTS;
  const lock = { namespace: 'default', name: Buffer.from(`bench/lock/${n % args.locks}`) };
  const owner = {
    session: { lease: BigInt(1 + client), incarnation: 2 + client },
    token: `6d1f0a52-77aa-4f0c-b1c5-${n.toString(16).padStart(12, '0')}`,
  };
  const attempt = 1;
  const acquire: LockCommand = {
    ...{ type: 'acquire', lock, owner, wait: true, waitUntilMs: 0, deadlineMs: timeMs + KEPT_MS, attempt },
    ...{ depthMax: 1_000, data: Buffer.of() },
  };
  return [acquire, { type: 'release', lock, owner, all: false, deadlineMs: 0, attempt }];
}

/** All acquires of an entry, then an entry with their releases. */
function make(pairs: number): readonly Buffer[] {
  const entries: Buffer[] = [];
  for (let begun = 0; begun < pairs; begun += args.inflight) {
    const cycle = Array.from({ length: args.inflight }, () => pair(cycles++));
    for (const side of [0, 1] as const) {
      entries.push(entryOf(cycle.map((both) => ({ type: 'lock', command: both[side] }))));
    }
  }
  return entries;
}

async function applyAll(entries: readonly Buffer[]): Promise<void> {
  for (const entry of entries) {
    const position = { index: state.applied.index + 1, term: 1 };
    const run = dataserver.EntryRun.begin(state, position, protocol.decodeEntry(entry), {
      onOutcome: (_place, outcome) => {
        if (outcome.ok && outcome.result.type === 'lock' && outcome.result.result.type === 'granted') granted++;
      },
    });
    await run.apply();
    if (engine.pending().bytes >= CHECKPOINT_BYTES) void engine.checkpoint();
    await setImmediate();
  }
}

/** CPU time of this process for applying commands for so long. */
async function measure(seconds: number): Promise<Omit<ApplyReport, 'rssBytes'>> {
  const endsMs = performance.now() + seconds * 1_000;
  let [micros, pairs] = [0, 0];
  while (performance.now() < endsMs) {
    const entries = make(PAIRS_AT_ONCE);
    const before = process.cpuUsage();
    const grantedBefore = granted;
    await applyAll(entries);
    const { user, system } = process.cpuUsage(before);
    micros += user + system;
    pairs += granted - grantedBefore;
    if (granted - grantedBefore !== (entries.length / 2) * args.inflight) throw new Error('a lock was not granted');
  }
  return { microsPerPair: micros / pairs, pairs };
}

await applyAll(Array.from({ length: CLIENTS }, (_, client) => entryOf([lease(client)])));
// Until as many outcomes are remembered as are to be, and the code is compiled.
for (let pairs = 0; pairs < args.remembered / 2; pairs += PAIRS_AT_ONCE) await applyAll(make(PAIRS_AT_ONCE));
const measured = await measure(args.seconds);
process.send?.({ type: 'applied', ...measured, rssBytes: process.memoryUsage().rss });
await engine.close();
