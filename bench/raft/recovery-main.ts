/**
 * A process of the recovery case: writes a log, or opens one and applies everything in it, and says what it took. Each
 * in a process of its own, so that memory is that of the recovery alone.
 */
import { setTimeout } from 'node:timers/promises';
import { nodeClock, nodeDisk, nodeRandom, silentLogger } from '@remora/base';
import { confOf, createRaftHost, type Entry, type GroupAppend, openGroupLog } from '@remora/raft';
import { LocalNetwork } from '@remora/raft/testing';
import type { RecoveryArguments, RecoveryReport } from './cases/recovery.ts';
import { CountingMachine } from './counting-machine.ts';

const BATCH_BYTES = 256 * 1024;
const BATCHES_IN_FLIGHT = 4;
const FIRST_GROUP = 2;
const POLL_MS = 5;

function openLog(dir: string): ReturnType<typeof openGroupLog> {
  const onFailure = (error: Error): void => {
    throw error;
  };
  return openGroupLog({ disk: nodeDisk(dir), dir: 'log', logger: silentLogger, onFailure });
}

async function write({ dir, bytes, payloadBytes, groups }: RecoveryArguments): Promise<void> {
  const log = await openLog(dir);
  const perBatch = Math.max(1, Math.floor(BATCH_BYTES / payloadBytes / groups));
  const data = Buffer.alloc(payloadBytes, 'remora');
  let next = 1;
  let left = Math.ceil(bytes / payloadBytes / groups);
  const append = (done: () => void): void => {
    const count = Math.min(perBatch, left);
    const entries: Entry[] = Array.from({ length: count }, (_, i) => ({
      index: next + i,
      term: 1,
      type: 'normal',
      data,
    }));
    next += count;
    left -= count;
    const hardState = { term: 1, vote: 1, commit: next - 1 };
    const batch: GroupAppend[] = Array.from({ length: groups }, (_, i) => ({
      groupId: FIRST_GROUP + i,
      hardState,
      entries,
    }));
    log.append(batch, done);
  };
  await new Promise<void>((resolve) => {
    let inFlight = 0;
    const fill = (): void => {
      while (left > 0 && inFlight < BATCHES_IN_FLIGHT) {
        inFlight++;
        append(() => {
          inFlight--;
          fill();
        });
      }
      if (inFlight === 0) resolve();
    };
    fill();
  });
  await log.close();
}

/** The most memory that this process has taken so far. */
function peakBytes(): number {
  return process.resourceUsage().maxRSS * 1024;
}

async function recover({ dir }: RecoveryArguments): Promise<RecoveryReport> {
  const clock = nodeClock();
  const baseBytes = peakBytes();
  const begunMs = performance.now();
  const log = await openLog(dir);
  const openMs = performance.now() - begunMs;
  const openPeakBytes = peakBytes() - baseBytes;
  const onFatal = (error: unknown): void => {
    throw error;
  };
  const network = new LocalNetwork({ clock, random: nodeRandom() });
  const host = createRaftHost({
    nodeId: 1,
    clock,
    random: nodeRandom(),
    log,
    transport: network.transport(1),
    onFatal,
  });
  const machines: { readonly machine: CountingMachine; readonly last: number }[] = [];
  let entries = 0;
  for (const [groupId, recovered] of log.recovered()) {
    const conf = confOf([1, 2, 3]); // not alone, so that nothing but what is committed is applied
    const machine = new CountingMachine(conf);
    const applied = { index: 0, term: 0 };
    host.createGroup({ groupId, replicaId: 1, applied, conf, recovered, stateMachine: machine, locate: () => 1 });
    machines.push({ machine, last: recovered.hardState.commit });
    entries += recovered.outline.lastIndex;
  }
  log.forgetRecovered();
  const applyBegunMs = performance.now();
  host.start();
  while (machines.some(({ machine, last }) => machine.applied.index < last)) {
    await setTimeout(POLL_MS); // a timer of the clock would not keep the process
  }
  const applyMs = performance.now() - applyBegunMs;
  const { entriesReadBack } = host.stats();
  await host.stop();
  await log.close();
  return { openMs, openPeakBytes, applyMs, applyPeakBytes: peakBytes() - baseBytes, entries, entriesReadBack };
}

const args: RecoveryArguments = JSON.parse(process.argv[2] ?? '{}');
if (args.mode === 'write') {
  await write(args);
  process.send?.({ type: 'written' });
} else {
  process.send?.({ type: 'recovered', ...(await recover(args)) });
}
process.on('disconnect', () => process.exit()); // its parent has the report
