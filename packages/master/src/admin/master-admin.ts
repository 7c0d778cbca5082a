import { ServiceError } from '@remora/base';
import {
  type Done,
  type FinalizeUpgradeRequest,
  type Method,
  masterCheck,
  masterFinalizeUpgrade,
  masterHotRanges,
  masterNodes,
  masterNoteRestore,
  masterRanges,
  masterSetSetting,
  masterSettings,
  masterUpgradeStatus,
  type RpcRegistry,
  type SetSettingRequest,
  type SettingInfo,
  type UpgradeStatus,
} from '@remora/protocol';
import type { MasterCommand } from '../metadata/master-commands.ts';
import type { MasterState } from '../metadata/master-state.ts';
import type { Upgrade } from '../nodes/upgrade.ts';
import type { ClusterHealth } from './cluster-health.ts';
import { hotRanges, type Knowledge, nodeOverviews, rangesPage } from './overview.ts';
import type { SettingsSchema } from './settings.ts';

/** MA2. */
export const RESTORE_NOTE = 'note: restore';

export interface MasterAdminDeps {
  readonly nodeId: number;
  readonly clusterId: string;
  readonly settings: () => SettingsSchema;
  readonly state: Pick<MasterState, 'settings'>;
  /** Calls back once this master is known to lead now (M6 of master.ts), or with the error. */
  readonly confirm: (done: (error: ServiceError | undefined) => void) => void;
  /** For how long this master has been leading, in ms. */
  readonly leadingMs: () => number;
  readonly knowledge: () => Knowledge;
  readonly health: Pick<ClusterHealth, 'report'>;
  readonly upgrade: Pick<Upgrade, 'status' | 'refusal'>;
  readonly propose: (command: MasterCommand, done: (error: ServiceError | undefined) => void) => void;
}

/**
 * Serves administrators on the masters' leader.
 *
 * MA1. A setting is checked against all others before it is proposed, and applied only if none was changed in the
 *      meantime: two administrators at once cannot create a combination that neither would have been allowed. While a
 *      change is not answered, no value is reported as already set, because the change may still be applied.
 * MA2. That a restore is under way is kept among the texts of the settings, under a name that is no setting: nobody can
 *      set it, and it is not listed.
 */
export class MasterAdmin {
  readonly #deps: MasterAdminDeps;
  /** Changes that are not answered (MA1). */
  #inFlight = 0;

  constructor(deps: MasterAdminDeps) {
    this.#deps = deps;
  }

  register(registry: RpcRegistry): void {
    const { clusterId, nodeId, leadingMs, knowledge } = this.#deps;
    this.#answer(registry, masterNodes, () => {
      const nodes = nodeOverviews(knowledge());
      return { clusterId, masterLeader: nodeId, leadingMs: leadingMs(), nodes };
    });
    this.#answer(registry, masterRanges, (request) => {
      const page = rangesPage(knowledge(), request);
      if (request.rangeId !== 0 && page.ranges.length === 0) throw this.#unknownRange(request.rangeId);
      return page;
    });
    this.#answer(registry, masterHotRanges, (request) => hotRanges(knowledge(), request));
    this.#answer(registry, masterCheck, () => this.#deps.health.report());
    this.#answer(registry, masterSettings, () => this.#settings());
    registry.handle(masterNoteRestore, ({ isUnderWay }, _context, done) =>
      this.#deps.confirm((error) =>
        error === undefined ? this.#noteRestore(isUnderWay, done) : done(error, undefined),
      ),
    );
    this.#answer(registry, masterUpgradeStatus, () => this.#deps.upgrade.status());
    registry.handle(masterFinalizeUpgrade, (request, _context, done) =>
      this.#deps.confirm((error) => (error === undefined ? this.#finalize(request, done) : done(error, undefined))),
    );
    registry.handle(masterSetSetting, (request, _context, done) =>
      this.#deps.confirm((error) => (error === undefined ? this.#setSetting(request, done) : done(error, undefined))),
    );
  }

  /** A method that only reads. */
  #answer<Request, Reply>(
    registry: RpcRegistry,
    method: Method<Request, Reply>,
    answer: (request: Request) => Reply,
  ): void {
    registry.handle(method, (request, _context, done) =>
      this.#deps.confirm((error) => {
        if (error !== undefined) return done(error, undefined);
        let reply: Reply;
        try {
          reply = answer(request);
        } catch (error) {
          if (error instanceof ServiceError) return done(error, undefined);
          throw error;
        }
        done(undefined, reply);
      }),
    );
  }

  #settings(): readonly SettingInfo[] {
    return this.#deps.settings().describe(this.#deps.state.settings.texts);
  }

  /** MA2. */
  #noteRestore(isUnderWay: boolean, done: Done<undefined>): void {
    const { version, texts } = this.#deps.state.settings;
    const text = isUnderWay ? 'under way' : '';
    if (text === (texts.get(RESTORE_NOTE) ?? '') && this.#inFlight === 0) return done(undefined, undefined);
    this.#inFlight += 1;
    this.#deps.propose({ type: 'changeSetting', expected: version, name: RESTORE_NOTE, text }, (error) => {
      this.#inFlight -= 1;
      done(error, undefined);
    });
  }

  /** MA1. */
  #setSetting({ name, value }: SetSettingRequest, done: Done<readonly SettingInfo[]>): void {
    const { version, texts } = this.#deps.state.settings;
    let text: string;
    try {
      text = this.#deps.settings().check(texts, name, value);
    } catch (error) {
      if (error instanceof ServiceError) return done(error, undefined);
      throw error;
    }
    if (text === (texts.get(name) ?? '') && this.#inFlight === 0) return done(undefined, this.#settings());
    this.#inFlight += 1;
    this.#deps.propose({ type: 'changeSetting', expected: version, name, text }, (error) => {
      this.#inFlight -= 1;
      if (error === undefined) done(undefined, this.#settings());
      else done(error, undefined);
    });
  }

  #finalize(request: FinalizeUpgradeRequest, done: Done<UpgradeStatus>): void {
    const { upgrade, propose } = this.#deps;
    const { inForce, newest } = upgrade.status();
    const version = request.version === 0 ? newest : request.version;
    const refused = upgrade.refusal(version);
    if (refused !== undefined) return done(refused, undefined);
    if (version === inForce) return done(undefined, upgrade.status());
    propose({ type: 'finalizeUpgrade', version }, (error) => {
      if (error === undefined) done(undefined, upgrade.status());
      else done(error, undefined);
    });
  }

  #unknownRange(rangeId: number): ServiceError {
    const known = this.#deps.knowledge().ranges.map((range) => range.rangeId);
    return new ServiceError('RANGE_NOT_FOUND', `unknown range ${rangeId}; the ranges are ${listed(known)}`, {
      details: { rangeId },
    });
  }
}

const LISTED_MAX = 20;

/** Ids for a message: the first few. */
function listed(ids: readonly number[]): string {
  const shown = [...ids].sort((a, b) => a - b).slice(0, LISTED_MAX);
  return shown.join(', ') + (ids.length > shown.length ? ` and ${ids.length - shown.length} more` : '');
}
