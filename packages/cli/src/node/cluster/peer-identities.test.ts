import type { CertificateNames } from '@remora/base';
import { incarnationDigest, type RegisteredNode } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { type NamedPeer, PeerIdentities } from './peer-identities.ts';

function setUp(founders: readonly number[] = [1, 2, 3]) {
  const named = new Map<number, NamedPeer>();
  const asked: string[] = [];
  const hinted = new Map<number, RegisteredNode>();
  const identities = new PeerIdentities({
    self: { nodeId: 1, incarnation: 'i1' },
    named: (nodeId) => named.get(nodeId),
    registered: (nodeId) => (nodeId < 1_000 ? { name: `n${nodeId}`, peerAddress: `10.0.0.${nodeId}:7481` } : undefined),
    hinted: (nodeId) => hinted.get(nodeId),
    trustDomain: () => 'remora',
    isFounder: (nodeId) => founders.includes(nodeId),
    askFounder: (nodeId) => asked.push(`node ${nodeId}`),
    askMasters: () => asked.push('masters'),
  });
  const name = (nodeId: number, removed = false): void => {
    named.set(nodeId, { incarnation: `i${nodeId}`, removed });
  };
  const answers = (nodeId: number, incarnation: string, wanted = true) =>
    identities.checkAnswer({ nodeId, wanted, digest: incarnationDigest(incarnation) });
  return { identities, name, answers, asked, hinted };
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

test('only a node whose incarnation is known is believed about its address (PA3)', () => {
  const { identities, name } = setUp();
  const known = (nodeId: number, incarnation: string) =>
    identities.isKnown({ nodeId, wanted: false, digest: incarnationDigest(incarnation) });
  expect(known(2, 'i2')).toBe(false);
  name(2);
  expect(known(2, 'i2')).toBe(true);
  expect(known(2, 'false')).toBe(false);
  expect(known(1, 'i1')).toBe(false);
  const certificate = { commonName: '', uris: ['spiffe://remora/node/n3'], hosts: [] };
  expect(identities.isKnown({ nodeId: 2, wanted: false, digest: incarnationDigest('i2'), certificate })).toBe(false);
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

describe('a certificate (PI5)', () => {
  const withUri = (...uris: string[]): CertificateNames => ({ commonName: '', uris, hosts: ['127.0.0.1'] });
  const rows: readonly { name: string; certificate: CertificateNames; fits: boolean }[] = [
    { name: 'names the node', certificate: withUri('spiffe://remora/node/n2'), fits: true },
    { name: 'names another node', certificate: withUri('spiffe://remora/node/n3'), fits: false },
    {
      name: 'names a node whose name begins in the same way',
      certificate: withUri('spiffe://remora/node/n22'),
      fits: false,
    },
    { name: 'names a node of another trust domain', certificate: withUri('spiffe://other/node/n2'), fits: false },
    { name: 'has another identity', certificate: withUri('spiffe://remora/ns/x/sa/n2'), fits: false },
    {
      name: 'has an identity and the address of the node',
      certificate: { ...withUri('spiffe://remora/x'), hosts: ['10.0.0.2'] },
      fits: false,
    },
    {
      name: 'has the address of the node, and no identity',
      certificate: { ...withUri(), hosts: ['10.0.0.2'] },
      fits: true,
    },
    { name: 'has another address, and no identity', certificate: { ...withUri(), hosts: ['10.0.0.3'] }, fits: false },
    {
      name: 'names the node by its common name alone',
      certificate: { commonName: 'n2', uris: [], hosts: [] },
      fits: false,
    },
  ];
  test.each(rows)('that $name', ({ certificate, fits }) => {
    const { identities, name } = setUp();
    name(2);
    const refused = { code: 'UNAUTHENTICATED' };
    const caller = identities.identify({ nodeId: 2, incarnation: 'i2' }, certificate);
    if (fits) expect(caller).toEqual({ kind: 'node', nodeId: 2 });
    else expect(caller).toMatchObject(refused);
    const answer = { nodeId: 2, wanted: true, digest: incarnationDigest('i2'), certificate };
    if (fits) expect(identities.checkAnswer(answer)).toBeUndefined();
    else expect(identities.checkAnswer(answer)).toMatchObject(refused);
  });

  test('has the address that the options of this node name, where the node has moved', () => {
    const { identities, name, hinted } = setUp();
    name(2);
    const moved = { ...withUri(), hosts: ['10.0.1.2'] };
    const caller = () => identities.identify({ nodeId: 2, incarnation: 'i2' }, moved);
    expect(caller()).toMatchObject({ code: 'UNAUTHENTICATED' });
    hinted.set(2, { name: 'n2', peerAddress: '10.0.1.2:7481' });
    expect(caller()).toEqual({ kind: 'node', nodeId: 2 });
  });

  test('of the right name does not replace the incarnation', () => {
    const { identities, name } = setUp();
    name(2);
    const certificate = withUri('spiffe://remora/node/n2');
    expect(identities.identify({ nodeId: 2, incarnation: 'false' }, certificate)).toMatchObject(CONFLICT);
  });

  test('of another founding member teaches nothing about this one, in an answer either (PI2)', () => {
    const { identities } = setUp();
    const certificate = withUri('spiffe://remora/node/n3');
    const digest = incarnationDigest('false');
    expect(identities.checkAnswer({ nodeId: 2, wanted: true, digest, certificate })).toMatchObject({
      code: 'UNAUTHENTICATED',
    });
    expect(identities.identify({ nodeId: 2, incarnation: 'false' })).toEqual(ANONYMOUS);
  });

  test('of a node that nobody knows yet goes with it: it may join under that name', () => {
    const { identities } = setUp();
    const certificate = withUri('spiffe://remora/node/n9');
    const caller = identities.identify({ nodeId: 1_009, incarnation: 'i9' }, certificate);
    expect(caller).toEqual({ kind: 'joiner', claims: 1_009, certificate });
  });
});
