export * from './canonical.ts';
export * from './diagnose.ts';
export * from './parse.ts';
export * from './types.ts';
