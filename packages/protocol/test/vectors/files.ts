import { readdirSync, readFileSync } from 'node:fs';

/** Our own vector files, in `packages/protocol/vectors`. */
const folder = new URL('../../vectors/', import.meta.url);

/** The text of every file by its name without `.json`. */
export function ownVectorTexts(): Map<string, string> {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return new Map(
    names.map((name) => [
      name.slice(0, -'.json'.length),
      readFileSync(new URL(name, folder), 'utf8'),
    ]),
  );
}
