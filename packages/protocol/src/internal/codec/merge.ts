import type {
  DecideMergeRequest,
  MergeCommand,
  MergeCommandResult,
  MergeRound,
  MergeVerdict,
  SealedRange,
  SealRequest,
  SettleRequest,
  UnsealRequest,
} from '../merge-api.ts';
import { asCount, asFields, invalid } from './check.ts';
import { decodeEpoch, decodeRangeDescriptor, encodeEpoch, encodeRangeDescriptor } from './descriptor.ts';

/** Tags among those of commands (command.ts). */
const SEAL = 15;
const MERGE = 16;
const REFUSE_MERGE = 17;
const UNSEAL = 18;

export function isMergeCommandTag(tag: unknown): boolean {
  return tag === SEAL || tag === MERGE || tag === REFUSE_MERGE || tag === UNSEAL;
}

export function encodeMergeCommand(command: MergeCommand): unknown[] {
  switch (command.type) {
    case 'seal':
      return [SEAL, encodeEpoch(command.epoch), encodeMergeRound(command.into)];
    case 'merge':
      return [MERGE, encodeEpoch(command.epoch), command.round, encodeSealedRange(command.source)];
    case 'refuseMerge':
      return [REFUSE_MERGE, command.round];
    case 'unseal':
      return [UNSEAL, encodeMergeRound(command.from)];
  }
}

export function decodeMergeCommand(raw: readonly unknown[]): MergeCommand {
  switch (raw[0]) {
    case SEAL: {
      const f = asFields(raw, 3, 'seal');
      return { type: 'seal', epoch: decodeEpoch(f[1]), into: decodeMergeRound(f[2]) };
    }
    case MERGE: {
      const f = asFields(raw, 4, 'merge');
      const round = asCount(f[2], 'merge.round');
      return { type: 'merge', epoch: decodeEpoch(f[1]), round, source: decodeSealedRange(f[3]) };
    }
    case REFUSE_MERGE:
      return { type: 'refuseMerge', round: asCount(asFields(raw, 2, 'refused merge')[1], 'merge.round') };
    case UNSEAL:
      return { type: 'unseal', from: decodeMergeRound(asFields(raw, 2, 'unseal')[1]) };
    default:
      throw invalid('command of a merge');
  }
}

export function encodeMergeResult(result: MergeCommandResult): unknown[] {
  switch (result.type) {
    case 'seal':
      return [SEAL, encodeSealedRange(result.sealed)];
    case 'merge':
      return [MERGE, encodeRangeDescriptor(result.range)];
    case 'refuseMerge':
      return [REFUSE_MERGE];
    case 'unseal':
      return [UNSEAL];
  }
}

export function decodeMergeResult(raw: readonly unknown[]): MergeCommandResult {
  switch (raw[0]) {
    case SEAL:
      return { type: 'seal', sealed: decodeSealedRange(asFields(raw, 2, 'result of a seal')[1]) };
    case MERGE:
      return { type: 'merge', range: decodeRangeDescriptor(asFields(raw, 2, 'result of a merge')[1]) };
    case REFUSE_MERGE:
      asFields(raw, 1, 'result of a refused merge');
      return { type: 'refuseMerge' };
    case UNSEAL:
      asFields(raw, 1, 'result of an unseal');
      return { type: 'unseal' };
    default:
      throw invalid('result of a merge');
  }
}

export function encodeMergeRound({ targetId, round }: MergeRound): unknown[] {
  return [targetId, round];
}

export function decodeMergeRound(raw: unknown): MergeRound {
  const f = asFields(raw, 2, 'round of a merge');
  return { targetId: asCount(f[0], 'merge.targetId'), round: asCount(f[1], 'merge.round') };
}

export function encodeSealedRange({ descriptor, index, revision }: SealedRange): unknown[] {
  return [encodeRangeDescriptor(descriptor), index, revision];
}

export function decodeSealedRange(raw: unknown): SealedRange {
  const f = asFields(raw, 3, 'sealed range');
  return {
    descriptor: decodeRangeDescriptor(f[0]),
    index: asCount(f[1], 'sealed.index'),
    revision: asCount(f[2], 'sealed.revision'),
  };
}

export function encodeSealRequest({ rangeId, epoch, into }: SealRequest): unknown[] {
  return [rangeId, encodeEpoch(epoch), encodeMergeRound(into)];
}

export function decodeSealRequest(raw: unknown): SealRequest {
  const f = asFields(raw, 3, 'request of a seal');
  return { rangeId: asCount(f[0], 'rangeId'), epoch: decodeEpoch(f[1]), into: decodeMergeRound(f[2]) };
}

export function encodeUnsealRequest({ rangeId, from }: UnsealRequest): unknown[] {
  return [rangeId, encodeMergeRound(from)];
}

export function decodeUnsealRequest(raw: unknown): UnsealRequest {
  const f = asFields(raw, 2, 'request of an unseal');
  return { rangeId: asCount(f[0], 'rangeId'), from: decodeMergeRound(f[1]) };
}

export function encodeSettleRequest({ rangeId, replicaId, index }: SettleRequest): unknown[] {
  return [rangeId, replicaId, index];
}

export function decodeSettleRequest(raw: unknown): SettleRequest {
  const f = asFields(raw, 3, 'question whether a replica has settled');
  return {
    rangeId: asCount(f[0], 'rangeId'),
    replicaId: asCount(f[1], 'replicaId'),
    index: asCount(f[2], 'index'),
  };
}

export function encodeDecideMergeRequest({ rangeId, sourceId, seal }: DecideMergeRequest): unknown[] {
  return [rangeId, sourceId, encodeMergeRound(seal)];
}

export function decodeDecideMergeRequest(raw: unknown): DecideMergeRequest {
  const f = asFields(raw, 3, 'question what became of a merge');
  return {
    rangeId: asCount(f[0], 'rangeId'),
    sourceId: asCount(f[1], 'sourceId'),
    seal: decodeMergeRound(f[2]),
  };
}

const VERDICTS: readonly MergeVerdict[] = ['merged', 'refused'];

export function encodeMergeVerdict(verdict: MergeVerdict): number {
  return VERDICTS.indexOf(verdict);
}

export function decodeMergeVerdict(raw: unknown): MergeVerdict {
  const verdict = VERDICTS[asCount(raw, 'verdict')];
  if (verdict === undefined) throw invalid('verdict on a merge');
  return verdict;
}
