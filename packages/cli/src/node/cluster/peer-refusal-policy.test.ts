import { type Logger, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { FrameLink, FrameReceiver } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { PeerRefusalPolicy } from './peer-refusal-policy.ts';

class Bed {
  readonly clock = new ManualClock();
  readonly final: string[] = [];
  readonly said: Readonly<Record<string, unknown>>[] = [];
  member = false;
  readonly standing = new PeerRefusalPolicy({
    clock: this.clock,
    logger: { ...silentLogger, warn: (fields) => this.said.push(fields) } satisfies Logger,
    isMember: () => this.member,
    onFinal: (error) => this.final.push(`${error.exit}: ${error.message}`),
  });

  refused(code: 'WRONG_CLUSTER' | 'NODE_CONFLICT' | 'UNAUTHENTICATED' | 'UNIMPLEMENTED'): void {
    this.standing.refused('node 2', { code, message: 'no' });
  }

  /** How whoever uses a link hears that it was refused. */
  closedBy(error: ServiceError): ServiceError | undefined {
    let inner: FrameReceiver | undefined;
    let heard: ServiceError | undefined;
    const link: FrameLink = {
      start: (receiver) => {
        inner = receiver;
      },
      send: () => true,
      close() {},
    };
    const onClose = (closed: ServiceError): void => {
      heard = closed;
    };
    this.standing.over(link, 'node 2').start({ onOpen() {}, onFrame() {}, onDrain() {}, onClose });
    inner?.onClose(error);
    return heard;
  }
}

interface Case {
  readonly name: string;
  readonly given: (bed: Bed) => void;
  readonly ends: readonly string[];
}

const REFUSALS = ['WRONG_CLUSTER', 'NODE_CONFLICT', 'UNAUTHENTICATED'] as const;

describe('a node that a peer refuses', () => {
  test.each<Case>([
    { name: 'has met nobody: it ends (ST1)', given: () => {}, ends: [...REFUSALS] },
    {
      name: 'has met a member: only its certificate is known to be good (ST3)',
      given: (bed) => bed.standing.met(),
      ends: ['WRONG_CLUSTER', 'NODE_CONFLICT'],
    },
    { name: 'was given its id: it goes on (ST2)', given: (bed) => bed.standing.joined(), ends: [] },
    {
      name: 'is one of the cluster: it goes on (ST2)',
      given: (bed) => {
        bed.member = true;
      },
      ends: [],
    },
  ])('$name', ({ given, ends }) => {
    for (const code of REFUSALS) {
      const bed = new Bed();
      given(bed);
      const final = ends.includes(code);
      bed.refused(code);
      expect(bed.final).toEqual(final ? ['dataDir: node 2 refuses this node: no'] : []);
      const heard = bed.closedBy(new ServiceError(code, 'no'));
      expect(heard?.code).toBe(final ? code : 'UNAVAILABLE');
      expect(bed.said).toEqual(
        final ? [] : [expect.objectContaining({ peer: 'node 2', code, advice: expect.any(String) })],
      );
    }
  });

  test('for another reason goes on, whatever its cluster knows of it', () => {
    const bed = new Bed();
    bed.refused('UNIMPLEMENTED');
    expect(bed.final).toEqual([]);
    expect(bed.said).toEqual([{ peer: 'node 2', code: 'UNIMPLEMENTED', reason: 'no' }]);
    expect(bed.closedBy(new ServiceError('DEADLINE_EXCEEDED', 'late'))?.code).toBe('DEADLINE_EXCEEDED');
  });

  test('says so once a minute for each that does', () => {
    const bed = new Bed();
    bed.member = true;
    for (let second = 0; second < 120; second++) {
      bed.refused('WRONG_CLUSTER');
      bed.clock.advance(1_000);
    }
    bed.standing.refused('node 3', { code: 'WRONG_CLUSTER', message: 'no' });
    expect(bed.said.map(({ peer }) => peer)).toEqual(['node 2', 'node 2', 'node 3']);
  });
});
