/**
 * Writes `packages/protocol/vectors/*.json`. Run it after a change of the makers in `vectors/`:
 *
 *     npx node packages/protocol/scripts/make-vectors.ts
 */
import { writeFileSync } from 'node:fs';
import { makeVectors } from './vectors/index.ts';

const folder = new URL('../vectors/', import.meta.url);
for (const [name, text] of makeVectors()) writeFileSync(new URL(`${name}.json`, folder), text);
