export * from './describe.ts';
export * from './parse.ts';
export * from './schema.ts';
export * from './suggest.ts';
export * from './types.ts';
