/** What the table of conditions advises, for one node and one range. */
export interface AdvicePiece {
  readonly text: string;
  /** A command, an option, or the name of a condition. */
  readonly isCode: boolean;
}

export interface About {
  /** Undefined: the condition is of no node. */
  readonly node: string | undefined;
  readonly range: string | undefined;
}

/** The advice in pieces: what is in backticks is code, and `NODE` and `RANGE` in commands become the ones concerned. */
export function advicePieces(advice: string, { node, range }: About): readonly AdvicePiece[] {
  return advice
    .split('`')
    .map((text, at) => ({ text: at % 2 === 0 ? text : filledIn(text, node, range), isCode: at % 2 === 1 }))
    .filter(({ text }) => text !== '');
}

function filledIn(command: string, node = 'NODE', range = 'RANGE'): string {
  if (!command.startsWith('remora ')) return command;
  return command.replace(/\b(NODE|RANGE)\b/g, (placeholder) => (placeholder === 'NODE' ? node : range));
}
