// A counter on three nodes. Run `node counter.mjs 1`, `... 2` and `... 3` in three terminals and type numbers.
import { createInterface } from 'node:readline';
import { nodeClock, nodeDisk, nodeRandom, openFramePort, silentLogger } from '@remora/base';
import { confOf, createRaftHost, createSocketTransport, openGroupLog } from '@remora/raft';

const me = Number(process.argv[2]);
const addresses = (process.env.ADDRESSES ?? '127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103').split(',');
const address = (node) => addresses[node - 1];
const [clock, random] = [nodeClock(), nodeRandom()];
const stop = (error) => {
  console.error(error);
  process.exit(1);
};

let value = 0; // the replicated state: whatever the log says, in its order
const counter = {
  apply(entries) {
    for (const { data } of entries) if (data.length > 0) value += Number(Buffer.from(data));
    console.log(`the counter is ${value}`);
  },
  roleChanged: ({ role, leader }) =>
    console.log(role === 'leader' ? 'I lead' : `${role}, the leader is ${leader || 'not known'}`),
  // Asked for only behind a checkpoint (`group.checkpointed`), which this example never makes: its log is its state.
  snapshot: () => stop('no snapshots here'),
  install: () => stop('no snapshots here'),
};

const local = { clusterId: 'counter', nodeId: me, incarnation: `node-${me}` };
const { transport, services } = createSocketTransport({
  ...{ local, clock, random, resolveAddress: address },
  verifyPeer: ({ nodeId, incarnation }) =>
    incarnation === `node-${nodeId}` ? undefined : { code: 'NODE_CONFLICT', message: 'it is an impostor' },
});
const disk = nodeDisk(process.env.DATA_DIR ?? `${process.cwd()}/counter-${me}`);
const log = await openGroupLog({ disk, dir: 'log', logger: silentLogger, onFailure: stop });
const host = createRaftHost({ nodeId: me, clock, random, log, transport, onFatal: stop });
const group = host.createGroup({
  ...{ groupId: 1, replicaId: me, conf: confOf([1, 2, 3]), stateMachine: counter },
  applied: { index: 0, term: 0 }, // nothing is kept outside the log
  recovered: log.recovered().get(1),
  locate: (replica) => replica, // replica 2 lives on node 2
});
const [ownHost, port] = address(me).split(':');
await openFramePort({ clock, host: ownHost, port: Number(port), services });
host.start();

for await (const line of createInterface({ input: process.stdin })) {
  const result = Number.isFinite(Number(line)) ? group.propose(Buffer.from(line)) : { refused: 'not a number' };
  if ('refused' in result) console.log(`refused: ${result.refused} (the leader is ${group.leader || 'not known'})`);
}
