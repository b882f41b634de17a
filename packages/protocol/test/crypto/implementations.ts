import { noblePrimitives, type Primitives } from '../../src/crypto/index.ts';
import { nodePrimitives } from '../../src/node/primitives.ts';

/** The two implementations of the primitives; they must never disagree. */
export const implementations: readonly (readonly [string, Primitives])[] = [
  ['noble', noblePrimitives],
  ['node', nodePrimitives],
];
