import { parseOptions } from '@remora/base';
import { HOST_DEFAULTS, hostOptions } from '@remora/raft';
import { expect, test } from 'vitest';
import { nodeSchema } from '../node-options.ts';
import { raftOptions } from './raft-options.ts';

function optionsFor(flags: Record<string, string>) {
  return hostOptions(raftOptions(parseOptions(nodeSchema, { flags })));
}

test('what an operator says of heartbeats, elections and snapshots is what the Raft host runs by', () => {
  const given = {
    ...{ heartbeatInterval: '200ms', electionTimeout: '2s' },
    ...{ snapshotBytesPerSecondMax: '8MiB', snapshotBytesPerSecondBusy: '2MiB' },
    ...{ snapshotSendsMax: '1', snapshotReceivesMax: '2' },
  };
  expect(optionsFor(given)).toMatchObject({
    ...{ tickMs: 25, heartbeatTicks: 8, electionTicks: 80, electionSpreadPercent: 50 },
    ...{ snapshotBytesPerSecondMax: 8 * 2 ** 20, snapshotBytesPerSecondBusy: 2 * 2 ** 20 },
    ...{ snapshotSendsMax: 1, snapshotReceivesMax: 2 },
  });
});

test("without options a node's snapshots have the library's limits", () => {
  const { snapshotBytesPerSecondMax, snapshotBytesPerSecondBusy, snapshotSendsMax, snapshotReceivesMax } =
    HOST_DEFAULTS;
  expect(optionsFor({})).toMatchObject({
    ...{ snapshotBytesPerSecondMax, snapshotBytesPerSecondBusy },
    ...{ snapshotSendsMax, snapshotReceivesMax },
  });
});
