/** Exchanges of certificates while clients work. Only in runs with authentication. */
import type { Random } from '@remora/base';
import { eventually } from '../../e2e/eventually.ts';
import { AUTHORITIES, type Certificates } from '../users/certificates.ts';
import type { Fault, FaultWorld } from './fault.ts';

/** Nodes look at their files every two seconds. */
const TAKEN_WITHIN_MS = 60_000;
const TAKEN = '"uses new certificates and keys"';
const PURPOSES_OF_A_NODE = 2;

const unavailable = ({ cluster }: FaultWorld): string | undefined =>
  cluster.certificates === undefined ? 'the run is without TLS (--auth)' : undefined;

function certificatesOf({ cluster }: FaultWorld): Certificates {
  if (cluster.certificates === undefined) throw new Error('there are no certificates');
  return cluster.certificates;
}

const exchanged: Fault = {
  kind: 'certificates exchanged',
  category: 'node',
  unavailable,
  async befall(world, random) {
    const certificates = certificatesOf(world);
    const how = await step(world, random, () => certificates.show());
    return `for others of the same authority, noticed ${how}`;
  },
};

/** In the order of docs/how-to/cluster/secure-a-cluster.md. */
const authorityExchanged: Fault = {
  kind: 'authority exchanged',
  category: 'node',
  unavailable,
  async befall(world, random) {
    const certificates = certificatesOf(world);
    const before = certificates.authority;
    const after = AUTHORITIES.find((name) => name !== before) ?? before;
    const first = await step(world, random, () => certificates.trust(AUTHORITIES));
    const second = await step(world, random, () => certificates.show(after));
    const third = await step(world, random, () => certificates.trust([after]));
    return `${before} by ${after}, noticed ${first}, ${second} and ${third}`;
  },
};

/** Changes files, and waits until every node uses them. Resolves to how nodes noticed it. */
async function step({ cluster }: FaultWorld, random: Random, change: () => void): Promise<string> {
  const before = cluster.nodes.map((node) => takenOf(node.log()));
  change();
  const signalled = random.int(2) === 0;
  if (signalled) for (const node of cluster.nodes) node.signal('SIGHUP');
  for (const [i, node] of cluster.nodes.entries()) {
    await eventually(
      `${node.name} uses other certificates`,
      () => takenOf(node.log()) >= (before[i] ?? 0) + PURPOSES_OF_A_NODE,
      { timeoutMs: TAKEN_WITHIN_MS, pollMs: 100 },
    );
  }
  return signalled ? 'by a signal' : 'by their files';
}

function takenOf(log: string): number {
  return log.split(TAKEN).length - 1;
}

export const CERTIFICATE_FAULTS: readonly Fault[] = [exchanged, authorityExchanged];
