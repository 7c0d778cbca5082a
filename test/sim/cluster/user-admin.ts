/**
 * The administrator of users and roles, who changes them through any gateway that is up.
 *
 * UM1. Changes are repeated until they are acknowledged. One that was made by an earlier attempt is refused, which says
 *      nothing about the other nodes. So the last change of each attempt is one that is made already, and its answer
 *      comes when every live node decides by the present revision.
 * UM2. Whoever asks for changes of one user awaits each before the next: of two that are repeated, either could come
 *      last.
 * UM3. Nothing is changed before the cluster is founded with authentication: founding would not continue.
 */
import { type Principal, ROOT } from '@remora/auth';
import { type Random, ServiceError } from '@remora/base';
import type { AuthChange } from '@remora/protocol';
import type { AuthAdmin } from '../../../packages/gateway/src/authorisation/auth-admin.ts';
import type { SimLoop } from '../common/env/loop.ts';
import { Violation } from '../common/violation.ts';
import type { SimNode } from './node.ts';
import { clientUsers } from './users.ts';

const AS_ROOT: Principal = { name: ROOT, method: 'certificate', door: 'grpc', address: undefined };
/** UM1. */
const MADE_ALREADY: AuthChange = { type: 'grantRole', user: ROOT, role: ROOT };
/** Longer than a silent node counts as live (`suspect-after`). */
const TIMEOUT_MS = 8_000;
const AGAIN_MS = 400;

export interface UserAdminDeps {
  readonly loop: SimLoop;
  readonly random: Random;
  readonly nodes: () => readonly SimNode[];
  readonly fail: (error: unknown) => void;
}

export class UserAdmin {
  /** Whether the users of clients are there. */
  ready = false;
  /** Changes that were acknowledged, and attempts at them that were not. */
  changed = 0;
  failed = 0;
  readonly #deps: UserAdminDeps;

  constructor(deps: UserAdminDeps) {
    this.#deps = deps;
  }

  /** Adds the users of clients, and whatever else `changes` says. */
  async setUp(clientIds: readonly number[], changes: readonly AuthChange[]): Promise<void> {
    await this.make([...clientUsers(clientIds), ...changes]);
    this.ready = true;
  }

  /** Resolves when the changes are acknowledged (UM1). */
  make(changes: readonly AuthChange[]): Promise<void> {
    return new Promise((resolve) => this.#attempt(changes, resolve));
  }

  #attempt(changes: readonly AuthChange[], done: () => void): void {
    const { loop, random, nodes } = this.#deps;
    let over = false;
    const end = (next: () => void): void => {
      if (over) return;
      over = true;
      next();
    };
    const again = (): void => {
      this.failed++;
      loop.setTimer(AGAIN_MS, () => this.#attempt(changes, done));
    };
    // An attempt may be lost with its gateway.
    loop.setTimer(TIMEOUT_MS + AGAIN_MS, () => end(again));
    const gateways = nodes().filter(({ auth, stopping }) => auth !== undefined && !stopping);
    const gateway = gateways[random.int(Math.max(1, gateways.length))];
    if (gateway === undefined) return end(again);
    gateway.enter(() => {
      const { auth } = gateway;
      if (auth === undefined || !isFounded(auth)) return end(again);
      makeAll(auth, changes).then(
        () =>
          end(() => {
            this.changed++;
            done();
          }),
        (error: unknown) => end(() => this.#failedAttempt(error, again)),
      );
    });
  }

  #failedAttempt(error: unknown, again: () => void): void {
    const isExplained =
      error instanceof ServiceError && error.code !== 'INTERNAL' && error.code !== 'PERMISSION_DENIED';
    if (isExplained) return again();
    this.#deps.fail(new Violation('errors are explained', `users and roles: ${error}`));
  }
}

function makeAll(auth: AuthAdmin, changes: readonly AuthChange[]): Promise<void> {
  return auth.changeAll({ principal: AS_ROOT, timeoutMs: TIMEOUT_MS }, async (make) => {
    for (const change of changes) await make(change).catch(unlessMade);
    await make(MADE_ALREADY); // UM1
  });
}

/** UM3. */
function isFounded(auth: AuthAdmin): boolean {
  try {
    return auth.image(AS_ROOT).enabled;
  } catch (error) {
    if (error instanceof ServiceError) return false; // the node has not heard of users, or not lately
    throw error;
  }
}

function unlessMade(error: unknown): void {
  if (!(error instanceof ServiceError && error.code === 'AUTH_REFUSED')) throw error;
}
