import { incarnationDigest } from '@remora/protocol';
import { expect, test } from 'vitest';
import { type NamedPeer, PeerIdentities } from './peer-identities.ts';

function setUp(founders: readonly number[] = [1, 2, 3]) {
  const named = new Map<number, NamedPeer>();
  const asked: string[] = [];
  const identities = new PeerIdentities({
    self: { nodeId: 1, incarnation: 'i1' },
    named: (nodeId) => named.get(nodeId),
    isFounder: (nodeId) => founders.includes(nodeId),
    askFounder: (nodeId) => asked.push(`node ${nodeId}`),
    askMasters: () => asked.push('masters'),
  });
  const name = (nodeId: number, removed = false): void => {
    named.set(nodeId, { incarnation: `i${nodeId}`, removed });
  };
  const answers = (nodeId: number, incarnation: string, wanted = true) =>
    identities.checkAnswer({ nodeId, wanted, digest: incarnationDigest(incarnation) });
  return { identities, name, answers, asked };
}

const CONFLICT = { code: 'NODE_CONFLICT' };
const ANONYMOUS = { kind: 'joiner', claims: 0 };

test('a node that the masters have named is known by its incarnation, and by no other (PI1)', () => {
  const { identities, name, answers } = setUp();
  for (const nodeId of [2, 1_001]) {
    name(nodeId);
    expect(identities.identify({ nodeId, incarnation: `i${nodeId}` })).toEqual({ kind: 'node', nodeId });
    expect(identities.identify({ nodeId, incarnation: 'false' })).toMatchObject(CONFLICT);
    expect(answers(nodeId, `i${nodeId}`)).toBeUndefined();
    expect(answers(nodeId, 'false')).toMatchObject(CONFLICT);
  }
});

test('a caller with the id of this node is refused, unless it is this node', () => {
  const { identities } = setUp();
  expect(identities.identify({ nodeId: 1, incarnation: 'false' })).toMatchObject(CONFLICT);
  expect(identities.identify({ nodeId: 1, incarnation: 'i1' })).toEqual({ kind: 'node', nodeId: 1 });
});

test('false hellos under the id of a founding member bar nobody, whoever comes first (PI3)', () => {
  const { identities, answers, asked } = setUp();
  for (let i = 0; i < 1_000; i++) {
    expect(identities.identify({ nodeId: 2, incarnation: `false ${i}` })).toEqual(ANONYMOUS);
  }
  expect(asked).toContain('node 2');
  expect(answers(2, 'i2')).toBeUndefined(); // at its address
  expect(identities.identify({ nodeId: 2, incarnation: 'i2' })).toEqual({ kind: 'node', nodeId: 2 });
  expect(identities.identify({ nodeId: 2, incarnation: 'false 1' })).toMatchObject(CONFLICT);
});

test('a founding member that answers with other data has lost its disk (PI2)', () => {
  const { identities, answers } = setUp();
  answers(2, 'i2');
  expect(answers(2, 'wiped')).toMatchObject(CONFLICT);
  expect(identities.identify({ nodeId: 2, incarnation: 'wiped' })).toMatchObject(CONFLICT);
});

test('whoever answers where nobody in particular was looked for does not become a founding member (PI2)', () => {
  const { identities, answers } = setUp();
  expect(answers(2, 'false', false)).toBeUndefined();
  expect(identities.identify({ nodeId: 2, incarnation: 'false' })).toEqual(ANONYMOUS);
});

test('the masters know better than what answered at an address', () => {
  const { identities, name, answers } = setUp();
  answers(2, 'false');
  name(2);
  expect(identities.identify({ nodeId: 2, incarnation: 'i2' })).toEqual({ kind: 'node', nodeId: 2 });
  expect(identities.identify({ nodeId: 2, incarnation: 'false' })).toMatchObject(CONFLICT);
});

test('a node that is not known yet may register under its id, and the masters are asked (PI3)', () => {
  const { identities, asked } = setUp();
  expect(identities.identify({ nodeId: 1_001, incarnation: 'x' })).toEqual({ kind: 'joiner', claims: 1_001 });
  expect(asked).toEqual(['masters']);
});

test('a founding member that the masters removed is nobody, and is told so when it joins', () => {
  const { identities, name, answers } = setUp();
  name(2, true);
  answers(2, 'i2');
  expect(identities.identify({ nodeId: 2, incarnation: 'i2' })).toEqual({ kind: 'joiner', claims: 2 });
});
