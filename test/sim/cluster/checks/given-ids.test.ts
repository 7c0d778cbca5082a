import { FIRST_EPOCH, type NodeDescriptor, type RangeDescriptor } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { GivenIds } from './given-ids.ts';

const NODE: NodeDescriptor = {
  nodeId: 1001,
  name: 'n',
  incarnation: 'disk a',
  roles: ['data'],
  peerAddress: '',
  clientAddress: '',
  httpAddress: '',
  version: '',
};
const RANGE: RangeDescriptor = {
  rangeId: 2,
  start: Buffer.alloc(0),
  end: Buffer.alloc(0),
  epoch: FIRST_EPOCH,
  replicas: [{ replicaId: 1001, nodeId: 1, type: 'voter' }],
  revisionSource: 'range',
};

describe('ids that masters give', () => {
  test('a good run: nodes change their addresses, and more of them come', () => {
    const ids = new GivenIds();
    ids.look({ nodes: [NODE], ranges: [RANGE] });
    const other = { ...NODE, nodeId: 1002, incarnation: 'disk b' };
    expect(() => ids.look({ nodes: [{ ...NODE, peerAddress: 'x' }, other], ranges: [RANGE] })).not.toThrow();
  });

  test('found: a node id that is given again', () => {
    const ids = new GivenIds();
    ids.look({ nodes: [NODE], ranges: [] });
    const again = { ...NODE, incarnation: 'disk b' };
    const text = 'ids are given once: node id 1001 was given to "disk a" and to "disk b"';
    expect(() => ids.look({ nodes: [again], ranges: [] })).toThrow(text);
  });

  test('found: a replica id that is given again', () => {
    const ids = new GivenIds();
    ids.look({ nodes: [], ranges: [RANGE] });
    const again = { ...RANGE, replicas: [{ replicaId: 1001, nodeId: 2, type: 'voter' as const }] };
    expect(() => ids.look({ nodes: [], ranges: [again] })).toThrow('replica id 1001');
  });
});
