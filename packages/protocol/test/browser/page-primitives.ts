/** Stands in for `src/node/primitives.ts` inside a page, where only `@noble/*` runs. */
export { noblePrimitives as nodePrimitives } from '../../src/crypto/index.ts';
