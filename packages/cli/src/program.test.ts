import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { createProgram } from './program.ts';
import type { Shell } from './shell.ts';

interface Page {
  readonly path: string;
  readonly text: string;
}

async function helpPages(): Promise<readonly Page[]> {
  let text = '';
  const out = (more: string): void => {
    text += `${more}\n`;
  };
  const shell = { env: {}, out, err: out } as unknown as Shell;
  const program = await createProgram({ shell, loadStartNode: () => Promise.reject(new Error('no node')) });
  const pages = (command: Command, path: string): Page[] => {
    text = '';
    command.outputHelp();
    return [{ path, text }, ...command.commands.flatMap((child) => pages(child, `${path} ${child.name()}`))];
  };
  return program.commands.flatMap((command) => pages(command, command.name()));
}

test('the help of every command has examples', async () => {
  const without = (await helpPages()).filter(({ text }) => !text.includes('\nExamples:\n'));
  expect(without.map(({ path }) => path)).toEqual([]);
});

test('defaults are written as they would be typed, and all in the same way', async () => {
  const wrong = (await helpPages()).flatMap(({ path, text }) => {
    const raw = text.match(/\(default [^)]*\)|<duration>[^(]*\(default: \d+\)|default: \{/g) ?? [];
    return raw.map((found) => `${path}: ${found}`);
  });
  expect(wrong).toEqual([]);
});
