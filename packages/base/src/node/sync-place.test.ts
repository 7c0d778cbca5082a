import { describe, expect, it } from 'vitest';
import { SyncPlace } from './sync-place.ts';

function placeAfter(tookMs: readonly number[]): SyncPlace {
  const place = new SyncPlace();
  for (const ms of tookMs) if (place.inPlace) place.measured(ms);
  return place;
}

const times = (count: number, ms: number): number[] => Array.from({ length: count }, () => ms);

describe('SyncPlace', () => {
  it.each([
    { name: 'begins in place', took: [], inPlace: true },
    { name: 'stays in place on a fast device', took: times(1_000, 0.3), inPlace: true },
    { name: 'leaves the loop on a slow device, after a few syncs', took: times(6, 10), inPlace: false },
    { name: 'leaves the loop on a device that is a little too slow', took: times(200, 0.6), inPlace: false },
    { name: 'takes one hiccup for what it is', took: [...times(100, 0.3), 15], inPlace: true },
    { name: 'leaves the loop at once when a sync takes very long', took: [...times(100, 0.3), 25], inPlace: false },
    {
      name: 'takes a hiccup now and then for what it is',
      took: Array.from({ length: 2_000 }, (_, i) => (i % 40 === 0 ? 15 : 0.3)),
      inPlace: true,
    },
    {
      name: 'leaves the loop when every fifth sync is slow',
      took: Array.from({ length: 200 }, (_, i) => (i % 5 === 0 ? 15 : 0.3)),
      inPlace: false,
    },
  ])('$name', ({ took, inPlace }) => {
    expect(placeAfter(took).inPlace).toBe(inPlace);
  });

  it('tries in place again after a while, and stays there if the device is fast again', () => {
    const place = placeAfter(times(6, 10));
    let pooled = 0;
    for (; !place.inPlace; pooled++) place.pooled();
    expect(pooled).toBe(256);

    place.measured(10);
    expect(place.inPlace).toBe(false);
    while (!place.inPlace) place.pooled();
    for (const ms of times(100, 0.2)) place.measured(ms);
    expect(place.inPlace).toBe(true);
  });
});
