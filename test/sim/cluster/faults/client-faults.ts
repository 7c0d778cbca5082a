/** Faults between a client and all gateways that last longer than sessions live. */
import { type Fault, SILENT } from '../../common/faults/fault.ts';
import type { World } from '../world.ts';

const LASTS_MS_MAX = 10_000;

/** A client reaches no gateway, silently or with its connections closed. */
const cutOff: Fault<World> = {
  kind: 'client cut off',
  lastsMs: (random) => 500 + random.int(LASTS_MS_MAX),
  begin: (world, { a, b }) => {
    const { id } = world.clientAt(a);
    return world.network.add({
      on: (from, to) => from === id || to === id,
      faults: b % 2 === 0 ? SILENT : { blocked: true },
    });
  },
};

/** How long answers come late before none come any more: a few heartbeats of every session. */
const LATE_FOR_MS = 3_000;
const LATE_MS_MIN = 100;
const LATE_MS_SPREAD = 1_400;

/**
 * Answers come late, and then none any more: a client must count from when it asked, not from when it was answered
 * (design §9).
 */
const answeredLate: Fault<World> = {
  kind: 'late answers to a client',
  lastsMs: (random) => LATE_FOR_MS + 2_000 + random.int(LASTS_MS_MAX),
  begin: (world, { a, b }) => {
    const { id } = world.clientAt(a);
    const delayMs = LATE_MS_MIN + (b % LATE_MS_SPREAD);
    let end = world.network.add({ on: (_from, to) => to === id, faults: { delayMs } });
    const later = world.loop.setTimer(LATE_FOR_MS, () => {
      end();
      end = world.network.add({ on: (from, to) => from === id || to === id, faults: SILENT });
    });
    return () => {
      later.cancel();
      end();
    };
  },
};

export const CLIENT_FAULTS: readonly Fault<World>[] = [cutOff, answeredLate];
