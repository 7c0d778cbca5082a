import { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import { ManualTimers } from '../../test/support/manual-timers.ts';
import { Output } from './output.ts';
import { FRAME } from './protocol.ts';

/** Takes nothing: what it is given waits in it. */
function stuckSocket(): Duplex {
  return new Duplex({ read() {}, write() {} });
}

test('large pieces leave before the end of the turn, as small ones do (O2)', () => {
  const socket = stuckSocket();
  const output = new Output(socket, new ManualTimers(), () => undefined);
  let most = 0;
  for (let frame = 0; frame < 1_000; frame++) {
    output.reserve(9);
    output.head(16_384, FRAME.data, 0, 1);
    output.piece(Buffer.alloc(16_384));
    most = Math.max(most, output.unsentBytes);
  }
  expect(most).toBeLessThan(400 << 10);
  expect(socket.writableLength + output.unsentBytes).toBe(1_000 * 16_393);
});
