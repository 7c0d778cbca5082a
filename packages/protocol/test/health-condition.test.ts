import { expect, test } from 'vitest';
import * as protocol from '../src/index.ts';
import { schema } from '../src/index.ts';

const { encode, decode } = schema.openCodec(protocol.HealthCondition);

test('a condition that only a newer release knows keeps its text (HC5)', () => {
  const newer = { ...protocol.healthCondition('logHangs', { nodeId: 3, rangeId: 4 }, 'the moon is full') };
  const sent = encode({ ...newer, name: 'moonIsFull' as protocol.ConditionName });
  const about = { nodeId: 3, rangeId: 4 };
  expect(decode(sent)).toEqual(protocol.healthCondition('ofNewerRelease', about, 'the moon is full'));
});

test('names of what every object has are no conditions', () => {
  const odd = { ...protocol.healthCondition('logHangs', {}, 'odd'), name: 'toString' as protocol.ConditionName };
  expect(decode(encode(odd))).toEqual(protocol.healthCondition('ofNewerRelease', {}, 'odd'));
});
