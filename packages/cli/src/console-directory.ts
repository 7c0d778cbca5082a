import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Beside the programs of a release, and in the workspace. */
const PLACES = ['../console/', '../../console/dist/static/'];

/** The directory with the files of the console; undefined if they have not been built. */
export function consoleDirectory(): string | undefined {
  const found = PLACES.map((place) => new URL(place, import.meta.url)).find((place) =>
    existsSync(new URL('index.html', place)),
  );
  return found === undefined ? undefined : fileURLToPath(found);
}
