/** The users of a run with authentication, their certificates, and the changes of their rights. */
import { join } from 'node:path';
import { SeededRandom } from '@remora/base';
import type { ClientFleet } from '../clients/client-fleet.ts';
import type { Journal } from '../journal/journal.ts';
import { type Access, type ClientAccess, withPassword } from './access.ts';
import { Certificates } from './certificates.ts';
import { VISITORS } from './rights.ts';
import { LOAD_PASSWORD, LOAD_USER, UserDesk } from './user-desk.ts';

const SEED = 0x75736572;

export class ChaosUsers {
  readonly certificates: Certificates;
  readonly access: { readonly root: Access; readonly clients: ClientAccess };
  readonly #random: SeededRandom;
  #desk: UserDesk | undefined;

  private constructor(certificates: Certificates, seed: number) {
    this.certificates = certificates;
    this.#random = new SeededRandom(seed ^ SEED);
    const visitors = Object.fromEntries(VISITORS.map(({ user }) => [user, certificates.access(user)]));
    const load = withPassword(certificates.access(LOAD_USER), LOAD_USER, LOAD_PASSWORD);
    this.access = { root: certificates.access('root'), clients: { load, visitors } };
  }

  static async make({
    dir,
    nodes,
    seed,
  }: {
    readonly dir: string;
    readonly nodes: number;
    readonly seed: number;
  }): Promise<ChaosUsers> {
    const certificates = await Certificates.make({
      dir: join(dir, 'certificates'),
      nodes: Array.from({ length: nodes }, (_, i) => `n${i + 1}`),
      users: ['root', LOAD_USER, ...VISITORS.map(({ user }) => user)],
    });
    return new ChaosUsers(certificates, seed);
  }

  /** Adds all users. `endpoints`: the nodes themselves, which no fault of the network separates from the desk. */
  async begin(given: {
    readonly endpoints: readonly string[];
    readonly journal: Journal;
    readonly clients: Pick<ClientFleet, 'tellPasswords'>;
  }): Promise<void> {
    const { endpoints, journal, clients } = given;
    this.#desk = new UserDesk({
      ...{ endpoints, journal, access: this.access.root, random: this.#random },
      tell: (passwords) => clients.tellPasswords(passwords),
    });
    await this.#desk.setUp();
  }

  /** Until the signal aborts, and the last change is acknowledged. */
  async keepChanging(signal: AbortSignal): Promise<void> {
    await this.#desk?.keepChanging(signal);
  }

  close(): void {
    this.#desk?.close();
  }
}
