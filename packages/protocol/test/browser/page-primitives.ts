/** Stands in for `@posthouse/primitives-node` inside a page, where only `@noble/*` runs. */
export { noblePrimitives as nodePrimitives } from '../../src/index.ts';
