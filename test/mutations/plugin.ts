/**
 * Loads a mutation of the table instead of the product's source. For vitest.config.ts; simulations are built with their
 * mutations (test/sim/common/planted/planter.ts).
 */
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';
import { mutate } from './mutation.ts';
import { mutationNamed } from './table.ts';

/** The repository's root, with a slash at its end. */
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** No plugin without a name. Throws if the table has no such mutation. */
export function mutationPlugins(name: string | undefined): Plugin[] {
  if (name === undefined || name === '') return [];
  const mutation = mutationNamed(name);
  const path = ROOT + mutation.file;
  return [
    {
      name: `mutation:${name}`,
      enforce: 'pre', // Before any transformation of the source.
      transform: (code, id) => (id.split('?')[0] === path ? { code: mutate(mutation, code), map: null } : undefined),
    },
  ];
}
