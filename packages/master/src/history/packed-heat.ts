import { type Heat, MEASURES } from '@remora/protocol';

/** What the objects of one minute take besides the contents of their arrays. */
const OBJECT_BYTES = 512;
/** Values as they are in memory. */
const VALUE_BYTES = 8;
const OFFSET_BYTES = 2;

/** The load of a minute, in few objects: all borders are one string. */
export class PackedHeat {
  readonly #text: string;
  /** Where each border ends in the text. */
  readonly #ends: Uint16Array;
  readonly #values: Float64Array;

  /** All borders together have less than 64 KiB: `HEAT_COLUMNS_MAX` of them, of `HEAT_BORDER_BYTES_MAX`. */
  constructor({ borders, values }: Heat) {
    // From a copy: a string that is put together of parts keeps them.
    this.#text = Buffer.from(borders.join(''), 'latin1').toString('latin1');
    this.#ends = new Uint16Array(borders.length);
    let end = 0;
    for (const [i, border] of borders.entries()) {
      end += border.length;
      this.#ends[i] = end;
    }
    this.#values = values.slice(0, borders.length * MEASURES);
  }

  /** About how much memory it takes. */
  get bytes(): number {
    return OBJECT_BYTES + this.#text.length + this.#ends.length * (OFFSET_BYTES + MEASURES * VALUE_BYTES);
  }

  get heat(): Heat {
    let start = 0;
    const borders = Array.from(this.#ends, (end) => {
      const border = this.#text.slice(start, end);
      start = end;
      return border;
    });
    return { borders, values: this.#values };
  }
}
