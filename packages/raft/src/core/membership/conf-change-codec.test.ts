import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ConfChange, type ConfStep, confChange, LEAVE_JOINT } from './conf-change.ts';
import { ConfChangeError, decodeConfChange, encodeConfChange } from './conf-change-codec.ts';

const change = fc.record({
  steps: fc.array(
    fc.record({
      type: fc.constantFrom<ConfStep['type']>('addVoter', 'addLearner', 'remove'),
      replica: fc.oneof(fc.nat(300), fc.maxSafeNat()),
    }),
    { maxLength: 8 },
  ),
  transition: fc.constantFrom<ConfChange['transition']>('auto', 'joint', 'jointAuto', 'forced'),
  context: fc.uint8Array({ maxLength: 300 }),
});

describe('the bytes of a membership change', () => {
  // These bytes are in logs: a change of them needs a new version, and code that still reads the old one.
  test('are these, for version 1', () => {
    const given: ConfChange = {
      steps: [
        { type: 'addVoter', replica: 4 },
        { type: 'addLearner', replica: 300 },
        { type: 'remove', replica: Number.MAX_SAFE_INTEGER },
      ],
      transition: 'jointAuto',
      context: Buffer.from('ab'),
    };
    expect(Buffer.from(encodeConfChange(given)).toString('hex')).toBe(
      '01020300' + '04' + '01ac02' + '02ffffffffffffff0f' + '026162',
    );
  });

  test('are none for the automatic leave', () => {
    expect(encodeConfChange(LEAVE_JOINT)).toHaveLength(0);
    expect(decodeConfChange(new Uint8Array(0))).toEqual(LEAVE_JOINT);
  });

  test('give back the change', () => {
    fc.assert(
      fc.property(change, (given) => {
        const back = decodeConfChange(encodeConfChange(given));
        const leave = given.steps.length === 0 && given.context.length === 0;
        expect({ ...back, context: Buffer.from(back.context) }).toEqual({
          ...given,
          ...(leave && { transition: 'auto' }),
          context: Buffer.from(given.context),
        });
      }),
    );
  });

  test('are not kept by the change that was read from them', () => {
    const bytes = Buffer.from(encodeConfChange({ ...confChange([]), context: Buffer.from('ab') }));
    const { context } = decodeConfChange(bytes);
    bytes.fill(0);
    expect(Buffer.from(context).toString()).toBe('ab');
  });
});

describe('bytes that are no membership change', () => {
  test.each([
    { name: 'an unknown version', hex: '02000000' },
    { name: 'an unknown transition', hex: '01040000' },
    { name: 'an unknown step', hex: '010001030400' },
    { name: 'an end in a step', hex: '01000100' },
    { name: 'an end in a number', hex: '01000180' },
    { name: 'a number beyond the safe integers', hex: '0100010080808080808080100000' },
    { name: 'a number without an end', hex: `010001${'80'.repeat(40)}` },
    { name: 'more steps than bytes', hex: '0100ffffffff0f' },
    { name: 'a context that is cut short', hex: '010000026' + '1' },
    { name: 'something behind the context', hex: '0100000161' + '62' },
  ])('are refused: $name', ({ hex }) =>
    expect(() => decodeConfChange(Buffer.from(hex, 'hex'))).toThrow(ConfChangeError),
  );

  test('are a change or an error, whatever they are', () => {
    const mutated = fc.tuple(change, fc.nat(), fc.nat(255), fc.nat(400)).map(([given, at, byte, length]) => {
      const bytes = Buffer.from(encodeConfChange(given));
      if (bytes.length > 0) bytes[at % bytes.length] = byte;
      return bytes.subarray(0, length);
    });
    fc.assert(
      fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 40 })), (bytes) => {
        try {
          const { steps } = decodeConfChange(bytes);
          expect(steps.every(({ replica }) => Number.isSafeInteger(replica) && replica >= 0)).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(ConfChangeError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
