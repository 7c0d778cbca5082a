// The Raft simulation as a build, for those who run it with a planted bug.
import * as common from '../../common/cli/load.mjs';

/** Resolves to the folder with what was built, and how to take it away. */
export function bundle(mutation) {
  return common.bundle('raft', mutation);
}

export const { importFrom } = common;
