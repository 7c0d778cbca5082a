/** Disks that run full, and that give back other bytes than they were given. */
import { violation } from '../../checkers/index.ts';
import { eventually } from '../../e2e/eventually.ts';
import type { NodeProcess } from '../../e2e/node-process.ts';
import { damageLog } from '../nodes/damage.ts';
import { drawMs, drawNode, type Fault } from './fault.ts';

const FULL_MS_MIN = 500;
const FULL_MS_MAX = 3_000;
/** A node notices at its next checkpoint at the latest. */
const NOTICED_WITHIN_MS = 20_000;
/** `remora --help`: the data directory is damaged. */
const EXIT_DATA_DIR = 3;
const DAMAGED = 'the write-ahead log is damaged';

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

/** A bit that turned in the middle of the log: the node must not start, and say why. Then the bit is put right. */
const damaged: Fault = {
  kind: 'log damaged',
  category: 'node',
  async befall(world, random) {
    const n = await drawNode(world, random);
    const node = world.cluster.node(n);
    await node.end('SIGKILL');
    const mend = damageLog(node);
    if (mend === undefined) {
      await world.cluster.bringBack(n);
      return `${node.name} was restarted: its log had too few writes to damage one in the middle`;
    }
    const loggedBefore = node.log().length;
    node.start();
    const { code } = await endOf(node);
    mend();
    const said = node.log().slice(loggedBefore).includes(DAMAGED);
    if (code !== EXIT_DATA_DIR || !said) {
      const detail = `${node.name} started with a damaged log and ended with code ${code}${said ? '' : ', without a word'}`;
      world.report(violation('damage is noticed', detail));
    }
    if (node.running) await node.end('SIGKILL');
    await world.cluster.bringBack(n);
    return `${node.name} refused to start with a bit turned in its log`;
  },
};

/** How the process ended; one that runs on is ready before it ends. */
async function endOf(node: NodeProcess): Promise<{ readonly code: number | null }> {
  return eventually(
    `${node.name} ends or is ready`,
    async () => {
      if (!node.running) return node.exit;
      const ready = await fetch(`http://${node.http}/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
      return ready ? { code: null } : undefined;
    },
    { timeoutMs: NOTICED_WITHIN_MS, pollMs: 100 },
  );
}

export const DISK_FAULTS: readonly Fault[] = [full, damaged];
