import { expect, test } from 'vitest';
import { decodeNodeDescriptor, encodeNodeDescriptor } from '../../../test/support/part-codecs.ts';
import { NODE } from '../../../test/support/samples.ts';
import { masterJoin } from '../methods/node-methods.ts';
import { packPlain } from './pack.ts';
import { unpack } from './unpack.ts';

const { nodeId: _, ...SELF } = NODE;
/** As large as options and data directories can make it. */
const LARGEST = {
  ...SELF,
  name: 'n'.repeat(64),
  incarnation: 'i'.repeat(64),
  roles: ['gateway', 'data', 'master'] as const,
  peerAddress: `${'h'.repeat(253)}:65535`,
  clientAddress: `${'h'.repeat(253)}:65535`,
  httpAddress: `${'h'.repeat(253)}:65535`,
  version: 'v'.repeat(64),
};

const joinAs = (descriptor: typeof SELF) =>
  masterJoin.decodeRequest(unpack(packPlain(masterJoin.encodeRequest({ nodeId: 0, descriptor })), 0));

test('a node that joins may be as large as its options allow', () => {
  expect(joinAs(LARGEST)).toEqual({ nodeId: 0, descriptor: LARGEST });
});

test.each<{ what: string; more: Partial<typeof SELF> }>([
  { what: 'a name of 65 characters', more: { name: 'n'.repeat(65) } },
  { what: 'no name', more: { name: '' } },
  { what: 'a name that options refuse', more: { name: 'a name\n' } },
  { what: 'an incarnation of 65 characters', more: { incarnation: 'i'.repeat(65) } },
  { what: 'a version of 60,000 characters', more: { version: 'v'.repeat(60_000) } },
  { what: 'a long peer address', more: { peerAddress: 'h'.repeat(301) } },
  { what: 'a long client address', more: { clientAddress: 'h'.repeat(301) } },
  { what: 'a long HTTP address', more: { httpAddress: 'h'.repeat(301) } },
  { what: 'a role twice', more: { roles: ['data', 'data'] } },
  { what: 'more roles than there are', more: { roles: Array(60_000).fill('data') } },
])('a node that joins with $what is refused; one that was stored remains readable', ({ more }) => {
  const large = { ...SELF, ...more };
  expect(() => joinAs(large)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  const stored = { ...large, nodeId: 4 };
  expect(decodeNodeDescriptor(encodeNodeDescriptor(stored))).toEqual(stored);
});
