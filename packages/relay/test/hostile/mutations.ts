/** Changes valid parameters in one place, or in a few. */
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import type { Chance } from './chance.ts';

/** What the mutations draw from: identifiers of the world, and whole parameters of other calls. */
export interface Material {
  /** Strings that occur in valid calls, by what they look like. */
  readonly strings: ReadonlyMap<string, readonly string[]>;
  readonly params: readonly JsonObject[];
}

type Open = Record<string, unknown> | unknown[];

/** The place of a value: what holds it and under which name or index. */
interface Place {
  readonly parent: Open;
  readonly key: string | number;
}

/** Returns a copy of valid parameters with one or more changes. */
export function mutate(params: JsonObject, chance: Chance, material: Material): JsonValue {
  if (chance.once(40)) return chance.pick(strangeValues) as JsonValue;
  if (chance.once(25)) return chance.pick(material.params);
  const root = { params: structuredClone(params) as unknown };
  for (let count = chance.pick([1, 1, 1, 2, 3]); count > 0; count -= 1) {
    const places = placesOf(root);
    if (places.length === 0) break;
    chance.pick(changes)(chance.pick(places), chance, material);
  }
  return (root.params ?? null) as JsonValue;
}

/** Returns the words that two strings have in common if one can stand for the other. */
export function likeness(text: string): string {
  if (text.startsWith('neo:')) return 'account';
  const prefix = /^(?:[a-z]+_|sha256:|svc\.)/.exec(text)?.[0];
  return prefix ?? `${text.length} characters`;
}

function placesOf(value: unknown): Place[] {
  if (typeof value !== 'object' || value === null) return [];
  const parent = value as Open;
  return keysOf(parent).flatMap((key) => [{ parent, key }, ...placesOf(get({ parent, key }))]);
}

function keysOf(parent: Open): (string | number)[] {
  return Array.isArray(parent) ? [...parent.keys()] : Object.keys(parent);
}

function get({ parent, key }: Place): unknown {
  return (parent as Record<string | number, unknown>)[key];
}

function set({ parent, key }: Place, value: unknown): void {
  Object.defineProperty(parent, key, {
    value: structuredClone(value),
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

const nested = (depth: number) => {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = level % 2 > 0 ? [value] : { a: value };
  return value;
};

const strangeValues: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1, 1.5, 2 ** 53 - 1, 2 ** 53, -(2 ** 53 - 1), 2 ** 31, 1e21],
  ...[
    '',
    ' ',
    'x',
    '\u0000',
    '\ud83d',
    '\u202e',
    '0',
    'null',
    '__proto__',
    '=',
    'AA',
    'AB',
    '../..',
  ],
  ...['neo:860833102:', 'x'.repeat(300), 'é'.repeat(5_000), 'A'.repeat(70_000)],
  ...[[], {}, [[]], [null], ['x'], { length: 1 }, { a: 1 }, nested(5), nested(11), nested(14)],
  ...[nested(17), Array.from({ length: 600 }, (_, index) => index), Array(3_000).fill('x')],
];

const strangeNames = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', '$context', '$type', 'x', ''],
  ...[
    'then',
    'toJSON',
    'length',
    'é',
    '\u0000',
    '\ud800',
    'k'.repeat(3_000),
    'account',
    'relay_id',
  ],
];

const changes: readonly ((place: Place, chance: Chance, material: Material) => void)[] = [
  // Missing.
  ({ parent, key }) => {
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
  },
  // Of another type or value.
  (place, chance) => set(place, chance.pick(strangeValues)),
  (place, chance) => set(place, chance.pick(strangeValues)),
  // Next to what it is, or around a limit.
  (place, chance) => {
    const value = get(place);
    if (typeof value === 'number') set(place, nextTo(value, chance));
    else if (typeof value === 'string') set(place, changedText(value, chance));
    else if (Array.isArray(value)) set(place, changedList(value, chance));
    else set(place, [value]);
  },
  (place, chance) => {
    const value = get(place);
    if (typeof value === 'string') set(place, changedText(value, chance));
  },
  // Another's identifier, key or signature.
  (place, chance, { strings }) => {
    const value = get(place);
    if (typeof value !== 'string') return;
    set(place, chance.pick(strings.get(likeness(value)) ?? ['x']));
  },
  (place, chance, { strings }) => {
    const value = get(place);
    if (typeof value !== 'string') return;
    set(place, chance.pick(strings.get(likeness(value)) ?? ['x']));
  },
  // A member that no chapter knows, also deep or large.
  ({ parent }, chance) => {
    if (Array.isArray(parent)) return;
    set({ parent, key: chance.pick(strangeNames) }, chance.pick(strangeValues));
  },
  // Values of two places exchanged.
  ({ parent, key }, chance) => {
    const other = chance.pick<string | number>(keysOf(parent));
    const [a, b] = [get({ parent, key }), get({ parent, key: other })];
    set({ parent, key }, b);
    set({ parent, key: other }, a);
  },
];

function nextTo(value: number, chance: Chance): number {
  const limit = chance.pick([0, 1, 8, 16, 64, 100, 500, 501, 1_024, 4_096, 131_072, 2 ** 53 - 1]);
  const from = chance.once(2) ? value : limit;
  return from + chance.pick([-1, 0, 1, 1, 86_400, -86_400, 31_536_000]);
}

function changedText(text: string, chance: Chance): string {
  const at = chance.below(text.length + 1);
  const kind = chance.below(6);
  if (kind === 0)
    return text.slice(0, at) + chance.pick([...'AQgw0-_=+/ \n\u0000éZ']) + text.slice(at + 1);
  if (kind === 1) return text.slice(0, at);
  if (kind === 2) return text + chance.pick(['A', '=', '\n', ' ', text, 'x'.repeat(1_000)]);
  if (kind === 3) return chance.once(2) ? text.toUpperCase() : text.toLowerCase();
  if (kind === 4) return text.slice(0, -1) + chance.pick([...'ABCDwxyz0189-_']);
  const length = chance.pick([22, 43, 64, 128, 129, 256, 257, 512, 2_048, 2_049, 8_192, 65_537]);
  return text.repeat(1 + Math.floor(length / (text.length + 1))).slice(0, length);
}

/** Characters of a list that is made long. */
const longestList = 300_000;

function changedList(list: readonly unknown[], chance: Chance): unknown[] {
  const kind = chance.below(4);
  if (kind === 0) return [];
  if (kind === 1) return [...list, ...list];
  if (kind === 2) return [...list].reverse();
  const item = list[0] ?? 'x';
  const most = Math.floor(longestList / JSON.stringify(item).length);
  return Array.from({ length: Math.min(most, chance.pick([9, 65, 101, 501, 1_001])) }, () => item);
}
