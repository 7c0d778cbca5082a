/**
 * The Huffman code of RFC 7541 appendix B.
 *
 * H1. The code is canonical: codes of one length are consecutive and grow with the symbol, and a longer code begins
 *     where the shorter ones end. So the table of lengths is the whole table.
 * H2. Decoding is a state machine over half octets. The shortest code has 5 bits, so a half octet completes at most one
 *     symbol.
 * H3. What follows the last symbol is shorter than 8 bits and all ones. Anything else, and the symbol EOS, is an error
 *     (§5.2).
 */
import { HpackError } from './header-field.ts';

// biome-ignore format: 16 symbols a line, as the table is read.
const LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];
const SYMBOLS = LENGTHS.length;
const EOS = 256;

/** The code of each symbol, in the low bits (H1). */
const CODES = canonicalCodes();

/**
 * Transitions by state and half octet: `state << 4 | bits`. The low octet is the next state, the second octet the
 * symbol, if EMITS is set.
 */
const TRANSITIONS = new Int32Array(SYMBOLS << 4);
/** The states in which a string may end (H3). */
const MAY_END = new Uint8Array(SYMBOLS);
const EMITS = 1 << 16;
const FAILS = 1 << 17;
fillTransitions();

/** The longest that `length` octets can become. */
export function huffmanDecodedBytesMax(length: number): number {
  return Math.floor((length * 8) / 5);
}

/** Decodes `source[start, end)` to `target`, which has room for the longest result. Returns the number of octets. */
export function huffmanDecode(source: Uint8Array, start: number, end: number, target: Uint8Array): number {
  let state = 0;
  let written = 0;
  for (let at = start; at < end; at++) {
    const octet = source[at] ?? 0;
    const high = TRANSITIONS[(state << 4) | (octet >> 4)] ?? 0;
    if ((high & EMITS) !== 0) target[written++] = high >> 8;
    const low = TRANSITIONS[((high & 0xff) << 4) | (octet & 15)] ?? 0;
    if ((low & EMITS) !== 0) target[written++] = low >> 8;
    if (((high | low) & FAILS) !== 0) throw new HpackError('a Huffman-coded string contains EOS');
    state = low & 0xff;
  }
  if (MAY_END[state] === 0) throw new HpackError('a Huffman-coded string ends in wrong padding');
  return written;
}

/** The octets that the text takes when it is coded. */
export function huffmanBytes(text: string): number {
  let bits = 0;
  for (let at = 0; at < text.length; at++) bits += LENGTHS[text.charCodeAt(at) & 0xff] ?? 0;
  return (bits + 7) >> 3;
}

/** Writes the coded text to `target` at `start`; returns where it ends. */
export function huffmanEncode(text: string, target: Uint8Array, start: number): number {
  let at = start;
  let pending = 0;
  let pendingBits = 0;
  for (let index = 0; index < text.length; index++) {
    const symbol = text.charCodeAt(index) & 0xff;
    const code = CODES[symbol] ?? 0;
    // A code of 30 bits does not fit beside 7 pending ones in the 32 bits of an operation: octet by octet.
    for (let left = LENGTHS[symbol] ?? 0; left > 0; ) {
      const taken = Math.min(8 - pendingBits, left);
      left -= taken;
      pending = (pending << taken) | ((code >>> left) & ((1 << taken) - 1));
      pendingBits += taken;
      if (pendingBits < 8) continue;
      target[at++] = pending;
      pending = 0;
      pendingBits = 0;
    }
  }
  if (pendingBits > 0) target[at++] = (pending << (8 - pendingBits)) | ((1 << (8 - pendingBits)) - 1);
  return at;
}

function canonicalCodes(): readonly number[] {
  const codes = new Array<number>(SYMBOLS).fill(0);
  let code = 0;
  for (let length = 1; length <= 30; length++) {
    code *= 2;
    for (let symbol = 0; symbol < SYMBOLS; symbol++) if (LENGTHS[symbol] === length) codes[symbol] = code++;
  }
  return codes;
}

interface Node {
  readonly state: number;
  readonly next: (Node | number | undefined)[];
}

/** Builds the tree of codes, whose inner nodes are the states, and walks it from each by every half octet. */
function fillTransitions(): void {
  const root: Node = { state: 0, next: [] };
  const nodes = [root];
  for (let symbol = 0; symbol < SYMBOLS; symbol++) {
    let node = root;
    for (let left = (LENGTHS[symbol] ?? 0) - 1; left >= 0; left--) {
      const bit = ((CODES[symbol] ?? 0) >>> left) & 1;
      if (left === 0) {
        node.next[bit] = symbol;
        break;
      }
      let next = node.next[bit];
      if (typeof next !== 'object') {
        next = { state: nodes.length, next: [] };
        nodes.push(next);
        node.next[bit] = next;
      }
      node = next;
    }
  }
  for (const node of nodes) {
    for (let bits = 0; bits < 16; bits++) TRANSITIONS[(node.state << 4) | bits] = transition(root, node, bits);
  }
  let ones: Node | number | undefined = root;
  for (let depth = 0; depth < 8 && typeof ones === 'object'; depth++) {
    MAY_END[ones.state] = 1;
    ones = ones.next[1];
  }
}

function transition(root: Node, from: Node, bits: number): number {
  let node = from;
  let emitted = 0;
  for (let left = 3; left >= 0; left--) {
    const next = node.next[(bits >> left) & 1];
    if (next === EOS || next === undefined) return FAILS;
    if (typeof next === 'object') {
      node = next;
    } else {
      emitted = EMITS | (next << 8);
      node = root;
    }
  }
  return node.state | emitted;
}
