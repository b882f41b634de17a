/** The kind of appends that tests of batches use, and its tables. */
import type { AppendKind, BatchWriter, Writer } from '../../src/storage/types.ts';

export async function makeThings(tx: Writer): Promise<void> {
  await tx.run('CREATE TABLE things (name TEXT NOT NULL PRIMARY KEY, place BIGINT NOT NULL)');
  await tx.run('CREATE TABLE heads (aggregate TEXT NOT NULL PRIMARY KEY, head BIGINT NOT NULL)');
}

/** An input of {@link things}. */
export interface Thing {
  readonly name: string;
  readonly of: string;
  readonly bytes?: number;
}

/** Numbers of batches' inputs, in the order in which the batches wrote. */
export const batches: number[] = [];

/** Gives each new name the next place of its aggregate; declines names that are there. */
export const things: AppendKind<Thing, number> = {
  name: 'things',
  aggregates: ({ of }) => [`account:${of}`],
  apply: () => undefined,
  batch: {
    bytes: ({ bytes = 1 }) => bytes,
    write: (tx, inputs) => writeThings(tx, inputs),
  },
};

export async function writeThings(
  tx: BatchWriter,
  inputs: readonly Thing[],
): Promise<(number | undefined)[]> {
  batches.push(inputs.length);
  const rows = await tx.all<{ name: string }>(
    `INSERT INTO things (name, place) SELECT name, 0 FROM unnest(?::text[]) AS name ORDER BY name
      ON CONFLICT DO NOTHING RETURNING name`,
    inputs.map(({ name }) => name),
  );
  const stored = new Set(rows.map(({ name }) => name));
  const accepted = new Set(inputs.filter(({ name }) => stored.delete(name)));
  const counts = new Map<string, number>();
  for (const { of } of accepted) counts.set(of, (counts.get(of) ?? 0) + 1);
  const heads = await tx.all<{ aggregate: string; head: number }>(
    `INSERT INTO heads (aggregate, head)
      SELECT aggregate, count FROM unnest(?::text[], ?::bigint[]) AS new (aggregate, count)
        ORDER BY aggregate
      ON CONFLICT (aggregate) DO UPDATE SET head = heads.head + excluded.head
      RETURNING aggregate, head`,
    [...counts.keys()],
    [...counts.values()],
  );
  const next = new Map(heads.map(({ aggregate, head }) => [aggregate, head]));
  return inputs.map((input) => {
    if (!accepted.has(input)) return undefined;
    const place = next.get(input.of) as number;
    next.set(input.of, place - 1);
    return place;
  });
}
