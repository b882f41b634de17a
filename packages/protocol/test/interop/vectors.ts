/**
 * The published test vectors of the protocol. They use another service word and context, both
 * taken from the file itself, and lie in the folder that `POSTHOUSE_INTEROP_VECTORS` names.
 * Without it their tests are skipped, visibly.
 *
 * @example
 * interface Common { base64url: { cases: { text: string; valid: boolean }[] } }
 *
 * describeVectors<Common>('common-v1', ({ data, network }) => {
 *   for (const { text, valid } of data.base64url.cases) test(text, () => { … });
 * });
 */
import { describe, expect, test } from 'vitest';
import { noblePrimitives, type Primitives } from '../../src/crypto/index.ts';
import { Network } from '../../src/index.ts';
import { Tracking } from './tracking.ts';
import { readVectorFile } from './vector-files.ts';

/** One vector file. `T` is the shape the test expects of it. */
export interface Interop<T> {
  /** Whether the file is there; everything below needs that. */
  readonly available: boolean;
  /** The content; what is read through it is remembered. Cannot be written to. */
  readonly data: T;
  /** The file's own service word and context. `noblePrimitives` unless others are given. */
  network(primitives?: Primitives): Network;
  /** The value at a JSON pointer of a `…_ref` member. */
  resolve<V = unknown>(pointer: string): V;
  /** JSON pointers of what no test has read so far, metadata apart. */
  unread(): string[];
}

/** Opens `<name>.json` of the vector folder. */
function interop<T>(name: string): Interop<T> {
  const root = readVectorFile(name);
  const tracking = new Tracking(root);
  return {
    available: root !== undefined,
    data: tracking.data as T,
    network: (primitives = noblePrimitives) =>
      fileNetwork(tracking.data as Record<string, string>, primitives),
    resolve: <V>(pointer: string) => tracking.resolve(pointer) as V,
    unread: () => tracking.unread(),
  };
}

function fileNetwork(root: Record<string, string>, primitives: Primitives): Network {
  const word = /^([a-z0-9]+)\.protocol\.test-vectors$/.exec(root.$type ?? '')?.[1];
  if (word === undefined) throw new Error('the file does not name a service word');
  return new Network({ context: root.network_context ?? '', word, primitives });
}

/**
 * A suite over one vector file. `body` registers tests; afterwards one more test asserts that
 * every value of the file was read. `unused` names JSON pointers (with everything below) that
 * rightly take no part, each with its reason.
 */
export function describeVectors<T>(
  name: string,
  body: (file: Interop<T>) => void,
  { unused = {} }: { readonly unused?: Readonly<Record<string, string>> } = {},
): void {
  const file = interop<T>(name);
  describe(`vectors ${name}`, () => {
    if (!file.available) {
      test.skip('skipped: POSTHOUSE_INTEROP_VECTORS names no folder with this file', () => {});
      return;
    }
    body(file);
    test('every section and case of the file was read', () => {
      const rest = file.unread().filter((pointer) => !isBelow(pointer, Object.keys(unused)));
      expect(rest).toEqual([]);
    });
  });
}

function isBelow(pointer: string, tops: readonly string[]): boolean {
  return tops.some((top) => pointer === top || pointer.startsWith(`${top}/`));
}

/** Bytes of standard base64, which only the published vectors use. */
export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
