import type { ResidentValue } from '@remora/base';
import type { Name } from './latin1.ts';

/** One resident row (resident-table.ts). A cell without a value: the row does not exist. */
export interface ResidentCell {
  readonly name: Name;
  value: ResidentValue | undefined;
  /** The number of pictures and generations begun before the cell was made (RT3); 0: the row is as the store has it. */
  readonly epoch: number;
  /** The tree has the cell (RT4). */
  placed: boolean;
  /** What lies below the cell in the store (resident-changes.ts RC1). */
  below: 'nothing' | 'row' | 'replaced';
}
