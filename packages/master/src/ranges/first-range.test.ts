import { FIRST_VERSION, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import { CONF, descriptor } from '../../test/support/descriptor.ts';
import type { MasterCommand } from '../metadata/master-commands.ts';
import { MasterState } from '../metadata/master-state.ts';
import { FirstRange } from './first-range.ts';

/** Founders 1, 2 and 3, of which those are up that a test says. */
class Bed {
  readonly clock = new ManualClock();
  readonly state = new MasterState(CONF);
  readonly proposed: MasterCommand[] = [];
  readonly up = new Set<number>();
  readonly first: FirstRange;
  version = FIRST_VERSION;

  constructor(replicas: number, ...borders: readonly string[]) {
    this.first = new FirstRange({
      ...{ clock: this.clock, logger: silentLogger, state: this.state, replicas },
      borders: borders.map((border) => Buffer.from(border)),
      isUp: (nodeId) => this.up.has(nodeId),
      founding: { mayCreateRanges: () => true },
      version: () => this.version,
      propose: (command, done) => {
        this.proposed.push(command);
        done(undefined, this.state.apply(command));
      },
    });
  }

  come(nodeId: number): void {
    this.state.apply({ type: 'registerNode', descriptor: descriptor(nodeId) });
    this.up.add(nodeId);
    this.first.look();
  }
}

describe('the ranges that a cluster begins with', () => {
  test('come after the version with which it begins, which the first version need not be', () => {
    const old = new Bed(1);
    old.come(1);
    expect(old.proposed.map(({ type }) => type)).toEqual(['bootstrapRange']);
    const bed = new Bed(1);
    bed.version = FIRST_VERSION + 1;
    bed.come(1);
    expect(bed.proposed.map(({ type }) => type)).toEqual(['finalizeUpgrade', 'bootstrapRange']);
    expect(bed.state.clusterVersion).toBe(FIRST_VERSION + 1);
  });

  test('are one, on the first nodes that are enough', () => {
    const bed = new Bed(2);
    bed.come(3);
    expect(bed.proposed).toEqual([]);
    bed.come(1);
    bed.come(2);
    expect(bed.proposed).toEqual([{ type: 'bootstrapRange', nodeIds: [1, 3] }]);
  });

  test('are spread over all founding nodes when there are several, and so are their first leaders', () => {
    const bed = new Bed(2, 'g', 'p');
    bed.come(1);
    bed.come(2);
    expect(bed.proposed).toEqual([]);
    bed.come(3);
    const [command] = bed.proposed;
    if (command?.type !== 'bootstrapRanges') throw new Error('several');
    expect(command.ranges.map(({ start, nodeIds }) => [String(start), nodeIds])).toEqual([
      ['', [1, 2]],
      ['g', [2, 3]],
      ['p', [3, 1]],
    ]);
    bed.first.look();
    expect(bed.proposed).toHaveLength(1);
  });

  test('do not wait for ever for a founding node that does not come', () => {
    const bed = new Bed(2, 'g');
    bed.come(1);
    bed.come(3);
    bed.clock.advance(4_900);
    bed.first.look();
    expect(bed.proposed).toEqual([]);
    bed.clock.advance(200);
    bed.first.look();
    const [command] = bed.proposed;
    expect(command).toMatchObject({ type: 'bootstrapRanges', ranges: [{ nodeIds: [1, 3] }, { nodeIds: [3, 1] }] });
  });
});
