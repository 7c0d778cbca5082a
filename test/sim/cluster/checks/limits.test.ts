import type { Command, Query } from '@remora/protocol';
import { expect, test } from 'vitest';
import { wronglyRefused } from './limits.ts';

const lock = { namespace: '', name: Buffer.from('l') };
const owner = { session: { lease: 1n, incarnation: 1 }, token: 't' };
const release: Command = { type: 'lock', command: { type: 'release', lock, owner, all: true, deadlineMs: 0 } };
const times = { waitUntilMs: 0, deadlineMs: 0, depthMax: 1 };
const acquire: Command = {
  type: 'lock',
  command: { type: 'acquire', lock, owner, wait: true, data: Buffer.alloc(0), ...times },
};

const spared: readonly { readonly name: string; readonly request: Command | Query }[] = [
  { name: 'a heartbeat', request: { type: 'leaseKeepAlive', id: 1n, incarnation: 1 } },
  { name: 'a release', request: release },
  { name: 'a cancel', request: { type: 'lock', command: { type: 'cancel', lock, owner, deadlineMs: 0 } } },
  { name: 'the end of a lease', request: { type: 'leaseRevoke', id: 1n, incarnation: 1 } },
];
test.each(spared)('found: $name is refused for a limit', ({ request }) => {
  expect(wronglyRefused(request, { code: 'RESOURCE_EXHAUSTED' })).toContain(request.type);
  expect(wronglyRefused(request, { code: 'UNAVAILABLE' })).toBe('');
});

const refusable: readonly { readonly name: string; readonly request: Command | Query }[] = [
  { name: 'an acquire', request: acquire },
  {
    name: 'a change of how many permits there are',
    request: { type: 'lock', command: { type: 'setCapacity', lock, capacity: 3 } },
  },
  { name: 'a look at a lock', request: { type: 'lock', query: { type: 'show', lock } } },
  { name: 'a list of leases', request: { type: 'leases' } },
];
test.each(refusable)('$name may be refused for a limit', ({ request }) => {
  expect(wronglyRefused(request, { code: 'RESOURCE_EXHAUSTED' })).toBe('');
});
