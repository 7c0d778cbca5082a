import { type CommandBatch, decodeEntry, encodeEntry, packVersioned, unpackVersioned } from '@remora/protocol';
import { decodeError, decodeFrame, encodeFrame } from '../../../packages/protocol/src/rpc/frame.ts';
import { codecOf } from '../../../packages/protocol/src/schema/codec.ts';
import { samplesOf } from '../../../packages/protocol/test/support/arbitrary.ts';
import { MESSAGES, type Message } from '../../../packages/protocol/test/support/messages.ts';
import * as samples from '../../../packages/protocol/test/support/samples.ts';
import { isInvalidArgument, sameAgain, type Target } from '../target.ts';

const VERSION = 1;
/** How many values of each message mutations start from. */
const SAMPLES = 20;

const entries: Target = {
  name: 'entry',
  corpus: () => [
    encodeEntry(samples.BATCH),
    encodeEntry(samples.BLOCK_BATCH),
    ...samples.BATCH.commands.map((command) => encodeEntry({ ...samples.BATCH, commands: [command] })),
    encodeEntry({
      ...samples.BATCH,
      commands: samples.TERMS_COMMANDS.map((command) => ({ command, requestId: 'r', deadlineMs: 5 })),
    }),
  ],
  decode(bytes) {
    sameAgain<CommandBatch>(decodeEntry(bytes), (batch) => decodeEntry(encodeEntry(batch)));
  },
  expected: isInvalidArgument,
};

/** Tests the codec of a message, including compiled code. */
function messageTarget({ name, kind, mode }: Message): Target {
  const codec = codecOf(kind, mode);
  const decode = (bytes: Uint8Array): unknown => codec.decode(unpackVersioned(VERSION, bytes, name));
  const encode = (value: unknown): Uint8Array => packVersioned(VERSION, codec.encode(value));
  return {
    name: `message-${name.replaceAll(/[ .]/g, '-')}`,
    corpus: () => samplesOf(kind, SAMPLES).map(encode),
    decode(bytes) {
      sameAgain(decode(bytes), (value) => decode(encode(value)));
    },
    expected: isInvalidArgument,
  };
}

const frames: Target = {
  name: 'rpc-frame',
  corpus: () => [
    encodeFrame([
      [0, 1, 'range.execute'],
      [1, 2, 1, [2, 1, 1, 'r', 5, [0, [7]]]],
      [2, 2],
      [5, 9, 100],
    ]),
    encodeFrame([[1, 2, ['NOT_LEADER', 'somebody else', { leader: 3, tried: ['a', 'b'], at: { x: 1n } }]]]),
  ],
  decode(bytes) {
    const items = decodeFrame(bytes);
    for (const item of items) if (item[0] === 1) tolerate(() => decodeError(item[2]));
    sameAgain(items, (value) => decodeFrame(encodeFrame(value)));
  },
  expected: isInvalidArgument,
};

function tolerate(decode: () => unknown): void {
  try {
    decode();
  } catch (error) {
    if (!isInvalidArgument(error)) throw error;
  }
}

export const PROTOCOL_TARGETS: readonly Target[] = [entries, ...MESSAGES.map(messageTarget), frames];
