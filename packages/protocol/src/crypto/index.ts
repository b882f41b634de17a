export { computeAsync } from './compute-async.ts';
export { isAcceptableEd25519Key, isAcceptableEd25519Signature } from './ed25519-keys.ts';
export { nextTurn } from './next-turn.ts';
export * from './noble.ts';
export * from './primitives.ts';
export * from './seal-key.ts';
export * from './signatures.ts';
