/** Disks that run full, and disks that return other bytes than were written. */
import { violation } from '../../checkers/index.ts';
import { eventually } from '../../e2e/eventually.ts';
import type { NodeProcess } from '../../e2e/node-process.ts';
import { damageEngine, damageEngineLog, damageLog, type Mend } from '../nodes/damage.ts';
import { drawMs, drawNode, type Fault } from './fault.ts';

const FULL_MS_MIN = 500;
const FULL_MS_MAX = 3_000;
/** A node notices the fault at its next checkpoint at the latest. */
const NOTICED_WITHIN_MS = 20_000;
/** `remora --help`: the data directory is damaged. */
const EXIT_DATA_DIR = 3;

const full: Fault = {
  kind: 'disk full',
  category: 'node',
  unavailable: ({ smallDisk }) => (smallDisk === undefined ? 'no small file system can be mounted here' : undefined),
  async befall({ cluster, smallDisk, pause }, random) {
    if (smallDisk === undefined) throw new Error('there is no small disk');
    const node = cluster.node(smallDisk.node);
    smallDisk.fill();
    let noticed = 'went on';
    try {
      const exit = await Promise.race([node.exit, pause(NOTICED_WITHIN_MS)]);
      if (exit !== undefined) noticed = `stopped with ${exit.signal ?? `code ${exit.code}`}`;
      await pause(drawMs(random, FULL_MS_MIN, FULL_MS_MAX));
    } finally {
      smallDisk.free();
    }
    await cluster.bringBack(smallDisk.node);
    return `the disk of ${node.name} ran full: it ${noticed}`;
  },
};

interface Damage {
  readonly inflict: (node: NodeProcess) => Mend;
  /** The expected message of the node. */
  readonly says: RegExp;
  /** The node may have the lost data elsewhere too, and continue. The answers to clients then decide whether it may. */
  readonly mayGoOn?: true;
}

/** Flips bits on the disk of a node. The node must not start, and must say why. Then the bits are restored. */
function damaged(kind: string, { inflict, says, mayGoOn }: Damage): Fault {
  return {
    kind,
    category: 'node',
    async befall(world, random) {
      const n = await drawNode(world, random);
      const node = world.cluster.node(n);
      await node.end('SIGKILL');
      const mend = inflict(node);
      if (mend === undefined) {
        await world.cluster.bringBack(n);
        return `${node.name} was restarted: it had too little on its disk to damage it`;
      }
      const loggedBefore = node.log().length;
      node.start();
      const { code } = await endOf(node);
      if (code === null && mayGoOn) return `${node.name} went on without what it lost`;
      if (node.running) await node.end('SIGKILL');
      mend();
      const said = says.test(node.log().slice(loggedBefore));
      const did = `${node.name} was started, and ${code === null ? 'served' : `ended with code ${code}`}`;
      if (code !== EXIT_DATA_DIR || !said) {
        world.report(violation('damage is noticed', `${kind}: ${did}${said ? '' : ', without a word'}`));
      }
      await world.cluster.bringBack(n);
      return did;
    },
  };
}

const DAMAGES: readonly Fault[] = [
  damaged('log damaged', { inflict: damageLog, says: /the write-ahead log is damaged/ }),
  damaged('engine damaged', { inflict: damageEngine, says: /the storage engine is damaged/ }),
  damaged('log of the engine damaged', {
    inflict: damageEngineLog,
    says: /the storage engine is damaged|the state of group \d+ is damaged/,
    mayGoOn: true,
  }),
];

/** How the process ended. A process that keeps running must be ready before it is ended. */
async function endOf(node: NodeProcess): Promise<{ readonly code: number | null }> {
  return eventually(
    `${node.name} ends or is ready`,
    async () => {
      if (!node.running) return node.exit;
      const ready = await fetch(`http://${node.health}/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
      return ready ? { code: null } : undefined;
    },
    { timeoutMs: NOTICED_WITHIN_MS, pollMs: 100 },
  );
}

export const DISK_FAULTS: readonly Fault[] = [full, ...DAMAGES];
