import { FIRST_VERSION, rangeUpTo, silentLogger, versionOf } from '@remora/base';
import { describe, expect, test } from 'vitest';
import type { CommandError } from '../../exit-codes.ts';
import { KnownVersion } from './known-version.ts';

const SECOND = versionOf('0.2') ?? 0;

class Bed {
  readonly records = {
    clusterVersion: undefined as number | undefined,
    rememberVersion: (version: number): void => {
      if (this.isFull) throw new Error('no space left');
      this.records.clusterVersion = version;
    },
  };
  isFull = false;
  readonly refused: CommandError[] = [];

  start(release: string): KnownVersion {
    const known = new KnownVersion({
      ...{ records: this.records, builds: rangeUpTo(release), logger: silentLogger },
      onUnfit: (error) => this.refused.push(error),
    });
    known.check();
    return known;
  }
}

describe('the version that a node knows', () => {
  test('is durable before the node writes in it, and known in its next life (KV1)', () => {
    const bed = new Bed();
    const known = bed.start('0.2');
    expect(known.report).toEqual({ min: FIRST_VERSION, max: SECOND, inForce: FIRST_VERSION });
    bed.isFull = true;
    expect(() => known.learn(SECOND)).toThrow('no space');
    expect(known.inForce).toBe(FIRST_VERSION);
    bed.isFull = false;
    known.learn(SECOND);
    expect(known.inForce).toBe(SECOND);
    expect(bed.start('0.2').inForce).toBe(SECOND);
  });

  test('is recorded also if it is the one with which the node began', () => {
    const bed = new Bed();
    bed.start('0.1').learn(FIRST_VERSION);
    expect(bed.records.clusterVersion).toBe(FIRST_VERSION);
  });

  test('never decreases, and masters without versions say nothing (KV3)', () => {
    const bed = new Bed();
    const known = bed.start('0.2');
    known.learn(SECOND);
    known.learn(FIRST_VERSION);
    known.learn(undefined);
    expect([known.inForce, bed.records.clusterVersion, bed.refused]).toEqual([SECOND, SECOND, []]);
  });

  test('keeps an earlier build from starting, and says what to install (KV2)', () => {
    const bed = new Bed();
    bed.records.clusterVersion = SECOND;
    expect(() => bed.start('0.1')).toThrow(
      'the cluster is at version 0.2, and this build writes versions up to 0.1: install Remora 0.2 or later',
    );
  });

  test('keeps a build that is two versions later from starting (KV2)', () => {
    const bed = new Bed();
    bed.records.clusterVersion = FIRST_VERSION;
    const builds = { min: SECOND, max: SECOND + 1 };
    const known = new KnownVersion({ records: bed.records, builds, logger: silentLogger, onUnfit() {} });
    expect(() => known.check()).toThrow('install Remora 0.2 on all nodes, run "remora admin upgrade finalize"');
  });

  test('stops a node that cannot write it, and the node does not record it', () => {
    const bed = new Bed();
    const known = bed.start('0.1');
    known.learn(SECOND);
    expect(bed.refused.map(({ exit }) => exit)).toEqual(['dataDir']);
    expect([known.inForce, bed.records.clusterVersion]).toEqual([FIRST_VERSION, undefined]);
  });
});
