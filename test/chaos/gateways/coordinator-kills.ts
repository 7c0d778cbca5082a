/**
 * Kills gateways before and after each message of the transactions that they coordinate, and when each message is
 * answered.
 *
 * CK1. Moments are dealt like cards: each comes up before any comes up again, and once more if no gateway reached it.
 * CK2. At a moment one gateway dies, the first one that reaches it. Of three gateways, two may be down at a time:
 *      clients always have another one.
 */
import type { Random } from '@remora/base';
import type { NodeProcess } from '../../e2e/node-process.ts';
import { Deck } from '../deck.ts';
import { TXN_MESSAGES } from './link-tap.ts';
import { type Moment, type MortalGateway, WHEN } from './mortal-gateway.ts';

export const MOMENTS: readonly Moment[] = TXN_MESSAGES.flatMap((message) => WHEN.map((when) => ({ when, message })));

/** How long a gateway may take to reach the moment. Then another moment is dealt. */
const PATIENCE_MS = 6_000;
/** CK2. */
const DOWN_MAX = 2;
const SKIPPED_MAX = 3;
const READY_WITHIN_MS = 30_000;
const REST_MS_MAX = 500;

export interface CoordinatorKillsDeps {
  readonly gateways: readonly MortalGateway[];
  readonly random: Random;
  /** Aborts when gateways must not be killed any more. */
  readonly signal: AbortSignal;
  /** Waits for this long, or less if the signal aborts. */
  pause(ms: number): Promise<void>;
  /** Called for each killed gateway, once it serves again. */
  killed(moment: Moment, gateway: string): void;
}

/** Runs until the signal aborts. Then all gateways serve. */
export async function killCoordinators(deps: CoordinatorKillsDeps): Promise<void> {
  const deck = new Deck(MOMENTS, deps.random);
  await Promise.all(Array.from({ length: DOWN_MAX }, () => killOn(deck, deps)));
}

async function killOn(deck: Deck<Moment>, deps: CoordinatorKillsDeps): Promise<void> {
  const { random, signal, pause, killed } = deps;
  while (!signal.aborted) {
    const moment = deck.deal();
    const process = await firstAt(moment, random.int(SKIPPED_MAX + 1), deps);
    if (process === undefined) {
      deck.putBack(moment);
      continue;
    }
    await process.exit;
    process.start();
    await process.untilReady(READY_WITHIN_MS);
    killed(moment, process.name);
    await pause(random.int(REST_MS_MAX));
  }
}

/** CK2. The killed gateway. Undefined: none reached that moment. */
async function firstAt(
  moment: Moment,
  skipped: number,
  { gateways, pause }: CoordinatorKillsDeps,
): Promise<NodeProcess | undefined> {
  let dead: NodeProcess | undefined;
  const fates: (() => void)[] = [];
  const spareAll = (): void => {
    for (const spare of fates) spare();
  };
  const struck = new Promise<void>((resolve) => {
    for (const gateway of gateways) {
      const spare = gateway.endAt(moment, skipped, () => {
        dead = gateway.process;
        spareAll();
        resolve();
      });
      fates.push(spare);
    }
  });
  await Promise.race([struck, pause(PATIENCE_MS)]);
  spareAll();
  return dead;
}
