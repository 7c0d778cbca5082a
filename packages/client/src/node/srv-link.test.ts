import { SeededRandom, ServiceError } from '@remora/base';
import type { FrameLink, FrameReceiver } from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { linkTo, type SrvRecord, targetsOf } from './srv-link.ts';

const record = (name: string, priority: number, weight: number): SrvRecord => ({ name, port: 7480, priority, weight });

describe('targets', () => {
  test('with a lower priority come first, and all of them come', () => {
    const records = [record('backup', 20, 9), record('a', 10, 1), record('b', 10, 1)];
    for (let seed = 0; seed < 20; seed++) {
      const targets = targetsOf(records, new SeededRandom(seed));
      expect([targets[2], [...targets].sort()]).toEqual(['backup:7480', ['a:7480', 'b:7480', 'backup:7480']]);
    }
  });

  test('are chosen by many clients in proportion to their weights', () => {
    const random = new SeededRandom(7);
    const records = [record('a', 1, 30), record('b', 1, 10), record('c', 1, 0)];
    const firsts = Array.from({ length: 4_000 }, () => targetsOf(records, random)[0]);
    const share = (host: string): number => firsts.filter((first) => first === `${host}:7480`).length / firsts.length;
    expect([share('a') > 0.7, share('b') > 0.2, share('c') > 0, share('c') < 0.01]).toEqual([true, true, true, true]);
  });

  test('that stand for nothing are left out', () => {
    expect(targetsOf([record('.', 0, 0), record('', 0, 0)], new SeededRandom(1))).toEqual([]);
  });
});

/** Links that are dialled, by address; the test opens or closes them. */
let dialled: Map<string, { receiver?: FrameReceiver; closed: boolean }>;
let lookups: string[];
let records: readonly SrvRecord[] | Error;
let heard: string[];
const receiver: FrameReceiver = {
  onOpen: () => heard.push('open'),
  onFrame: (frame) => heard.push(`frame ${frame}`),
  onDrain: () => heard.push('drain'),
  onClose: (error) => heard.push(`${error.code}: ${error.message}`),
};

function dial(address: string): FrameLink {
  const link: { receiver?: FrameReceiver; closed: boolean } = { closed: false };
  dialled.set(address, link);
  return {
    start: (to) => {
      link.receiver = to;
    },
    send: () => true,
    close: () => {
      link.closed = true;
    },
  };
}

beforeEach(() => {
  [dialled, lookups, heard] = [new Map(), [], []];
  records = [record('a', 1, 0), record('b', 2, 0)];
});

async function started(endpoint: string): Promise<FrameLink> {
  const lookUp = async (name: string): Promise<readonly SrvRecord[]> => {
    lookups.push(name);
    if (records instanceof Error) throw records;
    return records;
  };
  const link = linkTo(endpoint, { random: new SeededRandom(1), dial, lookUp });
  link.start(receiver);
  await new Promise(setImmediate);
  return link;
}

const refused = new ServiceError('UNAVAILABLE', 'refused');

describe('a connection to a name with SRV records', () => {
  test('goes to its first target', async () => {
    await started('srv://remora.example');
    dialled.get('a:7480')?.receiver?.onOpen();
    dialled.get('a:7480')?.receiver?.onFrame(Buffer.from('hi'));
    expect([lookups, [...dialled.keys()]]).toEqual([['_remora._tcp.remora.example'], ['a:7480']]);
    expect(heard).toEqual(['open', 'frame hi']);
  });

  test('goes to the next target when one cannot be reached, and fails after the last (SV2)', async () => {
    await started('srv://remora.example');
    dialled.get('a:7480')?.receiver?.onClose(refused);
    expect([[...dialled.keys()], heard]).toEqual([['a:7480', 'b:7480'], []]);
    dialled.get('b:7480')?.receiver?.onClose(refused);
    expect(heard).toEqual(['UNAVAILABLE: refused']);
  });

  test('that was open ends as a connection', async () => {
    await started('srv://remora.example');
    dialled.get('a:7480')?.receiver?.onOpen();
    dialled.get('a:7480')?.receiver?.onClose(refused);
    expect([[...dialled.keys()], heard]).toEqual([['a:7480'], ['open', 'UNAVAILABLE: refused']]);
  });

  test('looks the name up each time (SV1)', async () => {
    await started('srv://remora.example');
    records = [record('c', 1, 0)];
    await started('srv://remora.example');
    expect([...dialled.keys()]).toEqual(['a:7480', 'c:7480']);
  });

  test.each([
    { name: 'that is not in DNS', found: new Error('querySrv ENOTFOUND'), says: /records of _remora.* ENOTFOUND/ },
    { name: 'without targets', found: [], says: /it has no targets/ },
  ])('of a name $name fails, so that it is tried again (SV3)', async ({ found, says }) => {
    records = found;
    await started('srv://remora.example');
    expect(heard).toEqual([expect.stringMatching(says)]);
    expect(heard[0]).toMatch(/^UNAVAILABLE/);
  });

  test('that is closed dials no further target, and closes the one that it has', async () => {
    const link = await started('srv://remora.example');
    link.close();
    dialled.get('a:7480')?.receiver?.onClose(refused);
    expect([dialled.get('a:7480')?.closed, dialled.size, heard]).toEqual([true, 1, []]);
  });
});

test('an address is dialled as it is', async () => {
  await started('a:1');
  expect([lookups, [...dialled.keys()]]).toEqual([[], ['a:1']]);
});
