/** What a scheduler that balances says about its last look: `replicas per node: 2 to 3; balanced`. */
export function spreadText(least: number, most: number, what: string): string {
  const [low, high] = [Math.round(least), Math.round(most)];
  return `${what} per node: ${low === high ? low : `${low} to ${high}`}`;
}

/** Behind `spreadText`, where a move would not pay. */
export const BALANCED = 'balanced, nothing to move';
