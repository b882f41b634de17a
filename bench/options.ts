/** Options of a bench. What cannot be read ends it with one line that says why, and one of usage. */
import { parseArgs } from 'node:util';

/** An option: how its value is read, and what stands for it in the usage. */
export interface Option<T> {
  /** Missing for a flag. */
  readonly value?: string;
  readonly preset: T;
  /** @returns `undefined` if the text is no such value */
  read(text: string): T | undefined;
}

type Values<O extends Readonly<Record<string, Option<unknown>>>> = {
  readonly [Name in keyof O]: O[Name] extends Option<infer T> ? T : never;
};

export const flag: Option<boolean> = { preset: false, read: () => true };

/** A path or another text, `undefined` if the option is not given. */
export const text = (value: string): Option<string | undefined> => ({
  value,
  preset: undefined,
  read: (given) => given || undefined,
});

/** A number of at least `least`, which need not be whole. */
export const number = (preset: number, least = 0): Option<number> => ({
  value: 'N',
  preset,
  read: (given) => numberOf(given, least),
});

/** A whole number of at least 1. */
export const count = (preset: number): Option<number> => ({
  value: 'N',
  preset,
  read: countOf,
});

/** Whole numbers of at least 1, with commas. */
export const counts = (preset: readonly number[]): Option<readonly number[]> => ({
  value: 'N,N',
  preset,
  read: (given) => all(given.split(',').map(countOf)),
});

/** One of some words, by default the first. */
export const word = <const W extends string>(words: readonly [W, ...W[]]): Option<W> => ({
  value: words.join('|'),
  preset: words[0],
  read: (given) => words.find((each) => each === given),
});

/** Some of these words with commas, by default all. */
export const words = <const W extends string>(
  possible: readonly W[],
  preset: readonly W[] = possible,
): Option<readonly W[]> => ({
  value: possible.join(','),
  preset,
  read: (given) => all(given.split(',').map((one) => possible.find((each) => each === one))),
});

function numberOf(given: string, least: number): number | undefined {
  const value = given.trim() === '' ? Number.NaN : Number(given);
  return Number.isFinite(value) && value >= least ? value : undefined;
}

function countOf(given: string): number | undefined {
  const value = numberOf(given, 1);
  return Number.isSafeInteger(value) ? value : undefined;
}

function all<T>(values: readonly (T | undefined)[]): readonly T[] | undefined {
  const found = values.filter((value) => value !== undefined);
  return found.length === values.length ? found : undefined;
}

/**
 * Reads the options of this process; ends it with status 2 if one is unknown or has a wrong value.
 *
 * @param command how the bench is started, as in `npm run bench`
 */
export function readOptions<O extends Readonly<Record<string, Option<unknown>>>>(
  command: string,
  options: O,
): Values<O> {
  try {
    return parseOptions(options, process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${usageOf(command, options)}\n`);
    process.exit(2);
  }
}

/** @throws Error that names the option that is unknown or has a wrong value */
export function parseOptions<O extends Readonly<Record<string, Option<unknown>>>>(
  options: O,
  args: string[],
): Values<O> {
  const entries = Object.entries(options);
  const kinds = entries.map(([name, { value }]) => {
    return [name, { type: value === undefined ? 'boolean' : 'string' }] as const;
  });
  const given = parseArgs({ args, options: Object.fromEntries(kinds) }).values;
  const read = entries.map(([name, option]) => {
    if (given[name] === undefined) return [name, option.preset];
    const value = option.read(String(given[name]));
    if (value === undefined) throw new Error(`--${name} ${given[name]}: expected ${option.value}`);
    return [name, value];
  });
  return Object.fromEntries(read) as Values<O>;
}

function usageOf(command: string, options: Readonly<Record<string, Option<unknown>>>): string {
  const parts = Object.entries(options).map(([name, { value }]) => {
    return value === undefined ? `[--${name}]` : `[--${name} ${value}]`;
  });
  return `usage: ${command} -- ${parts.join(' ')}`;
}
