import { ServiceError } from '@remora/base';
import { type CommandBatch, staleEpoch } from '@remora/protocol';
import { failed, type Outcome } from './outcomes/outcome-codec.ts';
import type { RangeFields, RangeLeases } from './range-fields.ts';
import { commandWithin } from './request-bounds.ts';
import { passesSeal, sealedRefusal } from './reshape/merge.ts';

/**
 * Why a command is not applied: because of its epoch and bounds, checked at apply as they were when it was proposed
 * (traps 14), its deadline (A2 of the range state), a seal (A8), or a lease of its id that has not ended everywhere.
 * Refusals are not remembered: they changed nothing.
 */
export function admissionRefusal(
  state: Readonly<RangeFields>,
  batch: Pick<CommandBatch, 'epoch'>,
  item: CommandBatch['commands'][number],
): Outcome | undefined {
  const { descriptor, bounds, revision, rangeTimeMs, merging } = state;
  if (batch.epoch.version !== descriptor.epoch.version || !commandWithin(bounds, item.command)) {
    return failed(revision, staleEpoch([descriptor]));
  }
  if (merging.seal !== undefined && !passesSeal(item.command)) return failed(revision, sealedRefusal(descriptor));
  if (item.deadlineMs !== 0 && item.deadlineMs < rangeTimeMs) {
    return failed(revision, new ServiceError('DEADLINE_EXCEEDED', 'the request reached the range after its deadline'));
  }
  if (item.command.type === 'leaseGrant' && hasEarlier(state, item.command.id)) {
    const message = `an earlier lease ${item.command.id} is still ending; try again later`;
    return failed(revision, new ServiceError('UNAVAILABLE', message));
  }
  return undefined;
}

/**
 * Whether there is a lease with this id that is not alive: it is ending (S4 of leases.ts), or its home has lost it (BL2
 * of lease-ownership.ts).
 */
function hasEarlier({ leases, references }: RangeLeases, id: bigint): boolean {
  return leases.ending(id) !== undefined || (leases.get(id) === undefined && references.get(id) !== undefined);
}
