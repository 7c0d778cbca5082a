import type { Args } from './datadriven.ts';
import type { World } from './world.ts';

export type Command = (world: World, args: Args) => void;
