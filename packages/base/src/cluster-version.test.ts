import { describe, expect, test } from 'vitest';
import {
  BUILD_VERSIONS,
  brings,
  FEATURES,
  FIRST_VERSION,
  rangeOf,
  rangeText,
  rangeUpTo,
  versionOf,
  versionRefusal,
  versionText,
} from './cluster-version.ts';

const WHO = { own: 'node 1', peer: 'node 2' };

describe('versions', () => {
  test('are ordered as numbers', () => {
    const texts = ['0.1', '0.2', '0.9', '0.10', '1.0', '1.1', '2.0'];
    const versions = texts.map((text) => versionOf(text) ?? 0);
    expect([...versions].sort((a, b) => a - b)).toEqual(versions);
    expect(versions.map(versionText)).toEqual(texts);
  });

  test('are read only in their written form', () => {
    for (const text of ['', '1', '1.', '.1', '1.2.3', ' 0.1', '0.1 ', '-0.1', '0.1000', 'v0.1']) {
      expect(versionOf(text), text).toBe(undefined);
    }
    for (const text of ['', '0.1', '0.1-', '0.1-0.2-0.3', '0.2-0.1', '0.1 - 0.2']) {
      expect(rangeOf(text), text).toBe(undefined);
    }
    expect(rangeText(rangeOf('0.1-0.2') ?? BUILD_VERSIONS)).toBe('0.1-0.2');
  });

  test('a build writes its own version and the one before (CV1)', () => {
    expect(rangeText(rangeUpTo('0.1'))).toBe('0.1-0.1');
    expect(rangeText(rangeUpTo('0.2'))).toBe('0.1-0.2');
    expect(() => rangeUpTo('9.9')).toThrow('no row');
  });

  test('each feature is absent in the version before it', () => {
    for (const [feature, since] of Object.entries(FEATURES)) {
      const name = feature as keyof typeof FEATURES;
      expect([brings(since - 1, name), brings(since, name), brings(since + 1, name)]).toEqual([false, true, true]);
      expect(since).toBeGreaterThan(FIRST_VERSION);
    }
  });
});

describe('two builds', () => {
  const range = (text: string) => rangeOf(text) ?? { min: 0, max: 0 };
  test.each([
    { own: '0.1-0.1', peer: '0.1-0.1', inForce: '0.1', says: undefined },
    { own: '0.1-0.2', peer: '0.1-0.1', inForce: '0.1', says: undefined },
    { own: '0.1-0.1', peer: '0.1-0.2', inForce: '0.1', says: undefined },
    { own: '0.1-0.2', peer: '0.2-0.3', inForce: '0.2', says: undefined },
    {
      ...{ own: '0.1-0.2', peer: '0.1-0.1', inForce: '0.2' },
      says: 'node 2 writes versions up to 0.1, and the cluster of node 1 is at version 0.2: install Remora 0.2 or later',
    },
    {
      ...{ own: '0.1-0.1', peer: '0.2-0.3', inForce: '0.1' },
      says: 'node 2 writes versions from 0.2 on, and the cluster of node 1 is at version 0.1: install Remora 0.2 on all',
    },
    {
      ...{ own: '0.1-0.2', peer: '0.2-0.3', inForce: '0.1' },
      says: 'and run "remora admin upgrade finalize" first',
    },
    {
      ...{ own: '0.2-0.3', peer: '0.1-0.1', inForce: '0.2' },
      says: 'install Remora 0.2 or later',
    },
  ])('$own and $peer, with $inForce in force: $says', ({ own, peer, inForce, says }) => {
    const text = versionRefusal({ builds: range(own), inForce: versionOf(inForce) ?? 0 }, range(peer), WHO);
    if (says === undefined) expect(text).toBe(undefined);
    else expect(text).toContain(says);
  });

  test('a client of the version before is served after the new one is in force', () => {
    expect(versionRefusal({ builds: range('0.1-0.2') }, range('0.1-0.1'), WHO)).toBe(undefined);
    expect(versionRefusal({ builds: range('0.2-0.3') }, range('0.1-0.1'), WHO)).toContain(
      'node 1 from 0.2 on: install',
    );
    expect(versionRefusal({ builds: range('0.1-0.1') }, range('0.2-0.3'), WHO)).toContain('0.2 or later for node 1');
  });

  test('a peer that names no versions is refused', () => {
    expect(versionRefusal({ builds: BUILD_VERSIONS }, undefined, WHO)).toContain('does not name its versions');
  });
});
