/** Secrets in files. */
import { readFileSync, statSync } from 'node:fs';
import { OWN_UMASK } from '@remora/base';
import { CommandError } from '../exit-codes.ts';
import type { Shell } from '../shell.ts';

/** A file may end with the line's end that editors add. */
export function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, '');
}

/** Warns if others may read the file. @throws CommandError `usage` */
export function secretIn(path: string, flag: string, shell: Pick<Shell, 'err'>): string {
  let text: string;
  try {
    const { mode } = statSync(path);
    text = withoutLineEnd(readFileSync(path, 'utf8'));
    if ((mode & OWN_UMASK) !== 0) shell.err(`warning: ${path} is accessible to other users; run: chmod 600 ${path}`);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError('usage', `${flag} ${path}: it cannot be read: ${why}`, { cause });
  }
  if (text === '') throw new CommandError('usage', `${flag} ${path}: the file is empty`);
  return text;
}

/** @throws CommandError `usage` */
export function passwordIn(path: string, flag: string, shell: Pick<Shell, 'err'>): string {
  const password = secretIn(path, flag, shell);
  if (!password.includes('\n')) return password;
  throw new CommandError('usage', `${flag} ${path}: the file has several lines; a password has one`);
}
