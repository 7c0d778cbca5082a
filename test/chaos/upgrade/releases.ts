/**
 * The two releases of a run. Both are built from this tree, one as the earlier and one as the later release
 * (scripts/release/server-package.mjs). The bundle of a published release can take the place of either.
 */
import { join } from 'node:path';

export interface Releases {
  /** The version with which the cluster begins. */
  readonly older: Release;
  /** The next one. */
  readonly newer: Release;
}

export interface Release {
  /** As operators read it: 0.1. */
  readonly version: string;
  /** The program that starts a node. */
  readonly program: string;
}

/** `directory` has one folder for each release, by its name. */
export function releasesIn(directory: string, names: { readonly older: string; readonly newer: string }): Releases {
  const of = (name: string): Release => ({
    version: name.split('.').slice(0, 2).join('.'),
    program: join(directory, name, 'bin/remora.mjs'),
  });
  return { older: of(names.older), newer: of(names.newer) };
}
