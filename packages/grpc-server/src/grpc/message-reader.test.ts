import fc from 'fast-check';
import { expect, test } from 'vitest';
import { message } from '../../test/support/frame-client.ts';
import { MessageReader, type MessageSink } from './message-reader.ts';

class Sink implements MessageSink {
  readonly messages: string[] = [];
  held = 0;
  heldMax = 0;
  onMessage(isCompressed: boolean, bytes: Buffer): boolean {
    this.messages.push(`${isCompressed} ${bytes.toString('latin1')}`);
    return this.messages.length % 3 !== 0; // pauses now and then
  }
  isLengthAllowed(bytes: number): boolean {
    return bytes < 100_000;
  }
  messageBegun(): void {}
  hold(bytes: number): void {
    this.held += bytes;
    this.heldMax = Math.max(this.heldMax, this.held);
  }
}

test('messages are the same however their bytes are cut, and all memory is given back', () => {
  const messages = fc.array(
    fc.tuple(
      fc.boolean(),
      fc.string({ maxLength: 700 }).map((text) => text.replace(/[^ -~]/g, '.')),
    ),
  );
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1 }), (list, cuts) => {
      const body = Buffer.concat(list.map(([compressed, text]) => message(text, compressed ? 1 : 0)));
      const sink = new Sink();
      const reader = new MessageReader(sink);
      for (let at = 0, cut = 0; at < body.length; cut++) {
        const end = Math.min(body.length, at + (cuts[cut % cuts.length] ?? 1));
        while (at < end) at = reader.read(body, at, end);
      }
      expect(sink.messages).toEqual(list.map(([compressed, text]) => `${compressed} ${text}`));
      expect([sink.held, reader.isInside]).toEqual([0, false]);
    }),
  );
});

test('memory grows with what has arrived, not with what is announced', () => {
  const sink = new Sink();
  const reader = new MessageReader(sink);
  const body = message(Buffer.alloc(90_000));
  reader.read(body, 0, 1_005);
  expect(sink.held).toBeLessThanOrEqual(2_000);
  reader.read(body, 1_005, 50_005);
  expect(sink.held).toBeLessThanOrEqual(90_000);
});
