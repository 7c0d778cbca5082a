/** Words as they are typed in a shell, so that a command that is shown can be pasted. */
export function commandLine(words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
