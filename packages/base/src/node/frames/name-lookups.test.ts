import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { ManualClock } from '../../testing/index.ts';
import { NameLookups } from './name-lookups.ts';

/** RFC 6761 reserves `.invalid`: it resolves nowhere. */
const NOWHERE = 'n2.remora.invalid';

async function dial(lookups: NameLookups, host: string, port: number): Promise<void> {
  const socket: Socket = lookups.connect({ host, port });
  socket.on('error', () => {});
  socket.on('connect', () => socket.destroy());
  await new Promise((resolve) => socket.on('close', resolve));
}

test('a name that resolves nowhere is remembered until nobody has dialled it for a minute', async () => {
  const clock = new ManualClock();
  const lookups = new NameLookups(clock, undefined);
  await dial(lookups, NOWHERE, 1);
  expect(lookups.failed).toEqual([{ host: NOWHERE, code: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/) }]);
  clock.advance(59_000);
  expect(lookups.failed).toHaveLength(1);
  clock.advance(2_000);
  expect(lookups.failed).toEqual([]);
});

test('names that resolve and addresses are not remembered', async () => {
  const server = createServer((socket) => socket.on('error', () => {}));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const lookups = new NameLookups(new ManualClock(), undefined);
  for (const host of ['localhost', '127.0.0.1']) await dial(lookups, host, port);
  expect(lookups.failed).toEqual([]);
  server.close();
});
