import { MASTER_GROUP } from '@remora/raft';
import { expect, test } from 'vitest';
import { nameOf } from '../../../../packages/dataserver/src/engine/latin1.ts';
import { sealRow } from '../../../../packages/dataserver/src/engine/row-checksum.ts';
import { encodeMarker } from '../../../../packages/dataserver/src/install/marker.ts';
import { installKey, masterStateKey, stateKey } from '../../../../packages/dataserver/src/state/keys.ts';
import { encodeRangeMeta } from '../../../../packages/dataserver/src/state/meta-codec.ts';
import { MemoryMedium } from '../../../../packages/dataserver/src/testing/memory-store.ts';
import { CONF, StateBed } from '../../../../packages/dataserver/test/support/state-bed.ts';
import { MasterState } from '../../../../packages/master/src/metadata/master-state.ts';
import { encodeMasterImage } from '../../../../packages/master/src/metadata/metadata-codec.ts';
import { StoredPositions } from './stored-positions.ts';

function put(medium: MemoryMedium, key: Uint8Array, value: Uint8Array): void {
  medium.rows.set(nameOf(key), sealRow(key, value));
}

test('how far a store reaches: nowhere, to its state row, to the marker of an installation, to the newest row', () => {
  const medium = new MemoryMedium();
  const positions = new StoredPositions(medium);
  const { state } = new StateBed();
  const store = (index: number): void => {
    state.applied = { index, term: 2 };
    put(medium, stateKey(2), encodeRangeMeta(state));
  };
  expect(positions.of(2)).toEqual({ index: 0, term: 0 });
  store(5);
  expect(positions.of(2)).toEqual({ index: 5, term: 2 });
  const marker = { rangeId: 2, replicaId: 9, applied: { index: 8, term: 3 }, file: 'f', bytes: 1, span: state.bounds };
  put(medium, installKey(2), encodeMarker(marker));
  expect(positions.of(2)).toEqual({ index: 8, term: 3 });
  medium.rows.delete(nameOf(installKey(2)));
  store(9);
  expect(positions.of(2)).toEqual({ index: 9, term: 2 });
});

test('which replicas a store has, and whether a snapshot is being installed', () => {
  const medium = new MemoryMedium();
  const positions = new StoredPositions(medium);
  const told = () => [positions.has(MASTER_GROUP), positions.has(2), positions.has(3), positions.installing];
  expect(told()).toEqual([true, false, false, false]);
  put(medium, stateKey(2), encodeRangeMeta(new StateBed().state));
  expect(told()).toEqual([true, true, false, false]);
  const marker = {
    rangeId: 3,
    replicaId: 9,
    applied: { index: 8, term: 3 },
    file: 'f',
    bytes: 1,
    span: new StateBed().state.bounds,
  };
  put(medium, installKey(3), encodeMarker(marker));
  expect(told()).toEqual([true, true, true, true]);
});

test('how far the state of a master reaches', () => {
  const medium = new MemoryMedium();
  const state = new MasterState(CONF);
  state.applied = { index: 4, term: 1 };
  put(medium, masterStateKey(MASTER_GROUP), encodeMasterImage(state.image()));
  expect(new StoredPositions(medium).of(MASTER_GROUP)).toEqual({ index: 4, term: 1 });
});
