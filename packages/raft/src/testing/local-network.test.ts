import { nodeClock, SeededRandom } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { heartbeat, Recorder, transportContract } from '../../test/support/transport/transport-contract.ts';
import type { NodeId, Transport } from '../multi/ports.ts';
import { LocalNetwork } from './local-network.ts';

transportContract('in memory', async () => {
  const network = new LocalNetwork({ clock: nodeClock(), random: new SeededRandom(1), snapshots: { resumeMs: 300 } });
  const nodes = new Map<NodeId, Transport>();
  return {
    start: async (node, handlers) => {
      const transport = network.transport(node);
      transport.start(handlers);
      nodes.set(node, transport);
      return transport;
    },
    stop: async (node) => nodes.get(node)?.stop(),
    close: async () => {
      for (const transport of nodes.values()) await transport.stop();
    },
  };
});

function manualPair(seed: number) {
  const clock = new ManualClock();
  const network = new LocalNetwork({ clock, random: new SeededRandom(seed) });
  const [one, two] = [new Recorder(), new Recorder()];
  const a = network.transport(1);
  a.start(one);
  network.transport(2).start(two);
  return { clock, network, a, one, two };
}

test('a one-way partition lets the other direction through, and healing ends it', () => {
  const { clock, network, a, one, two } = manualPair(1);
  network.setLink({ from: 1, to: 2 }, { blocked: true });
  a.send(2, [heartbeat(1)]);
  clock.advance(10);
  expect(two.messages).toHaveLength(0);
  expect(one.unreachable).toEqual([2]);
  network.heal();
  a.send(2, [heartbeat(2)]);
  clock.advance(10);
  expect(two.sequence()).toEqual([2]);
});

test('nodes of different sides of a partition do not reach each other', () => {
  const { clock, network, a, two } = manualPair(1);
  network.partition([1, 3], [2]);
  a.send(2, [heartbeat(1)]);
  clock.advance(10);
  expect(two.messages).toHaveLength(0);
  network.partition([1, 2]);
  a.send(2, [heartbeat(2)]);
  clock.advance(10);
  expect(two.sequence()).toEqual([2]);
});

test('frames in flight are lost when the link is cut', () => {
  const { clock, network, a, two } = manualPair(1);
  network.setLink({ from: 1, to: 2 }, { delayMs: 20 });
  a.send(2, [heartbeat(1)]);
  clock.advance(10);
  network.partition([1], [2]);
  clock.advance(100);
  expect(two.messages).toHaveLength(0);
});

test('one seed gives one run of losses, repetitions and delays; order holds unless reordering is asked for', () => {
  const run = (seed: number, reorder: boolean) => {
    const { clock, network, a, two } = manualPair(seed);
    network.setLink(
      { from: 1, to: 2 },
      { dropPerMille: 300, duplicatePerMille: 200, delayMs: 5, jitterMs: 20, reorder },
    );
    for (let i = 0; i < 200; i++) {
      a.send(2, [heartbeat(i)]);
      clock.advance(1);
    }
    clock.advance(100);
    return two.sequence();
  };
  const inOrder = run(7, false);
  expect(inOrder).toEqual(run(7, false));
  expect(inOrder).not.toEqual(run(8, false));
  expect(new Set(inOrder).size).toBeLessThan(200);
  expect(inOrder.length).toBeGreaterThan(new Set(inOrder).size);
  expect(inOrder).toEqual(inOrder.toSorted((a, b) => a - b));
  const shuffled = run(7, true);
  expect(shuffled).not.toEqual(shuffled.toSorted((a, b) => a - b));
});
