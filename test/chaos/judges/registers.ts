import { checkLinearizable, type Finding, registerModel } from '../../checkers/index.ts';
import type { Round } from './evidence.ts';
import { askedOf, recordsOf } from './records.ts';
import { findingOf } from './verdicts.ts';

/** Registers are linearizable. */
export function judgeRegisters(round: Round): readonly Finding[] {
  return findingOf('registers', checkLinearizable(registerModel, recordsOf(askedOf(round, 'registers'))));
}
